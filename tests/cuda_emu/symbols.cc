// SPDX-License-Identifier: Apache-2.0
// ELF symbol tables of loaded modules.
#include "tests/cuda_emu/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

extern "C" void* __tls_get_addr(unsigned long index[2]);

namespace onward::cuda_emu {
namespace {

struct Module {
  uintptr_t base = 0;
  std::string path;
  unsigned long tls_index = 0;
  // In the file, which stays mapped.
  std::span<const ElfW(Sym)> symbols;
  const char* names = nullptr;
};

// By module.
thread_local std::map<const Module*, std::vector<SharedArray>> shared_arrays;

struct Query {
  uintptr_t address;
  Module* module;
};

int FindModule(dl_phdr_info* info, size_t, void* data) {
  auto* query = static_cast<Query*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || query->address < start ||
        query->address >= start + header.p_memsz) {
      continue;
    }
    query->module->base = info->dlpi_addr;
    query->module->path = *info->dlpi_name != '\0' ? info->dlpi_name : "/proc/self/exe";
    query->module->tls_index = info->dlpi_tls_modid;
    return 1;
  }
  return 0;
}

std::string Demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// The whole file, or null. A library with the debugger's tables is large, so it is not read.
const char* MapFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat facts;
  void* mapped = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(ElfW(Ehdr)))) {
    mapped = mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  }
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<const char*>(mapped);
}

void ReadSymbols(Module& module) {
  const char* file = MapFile(module.path);
  if (file == nullptr) return;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    module.names = file + sections[sections[i].sh_link].sh_offset;
    module.symbols = {reinterpret_cast<const ElfW(Sym)*>(file + sections[i].sh_offset),
                      sections[i].sh_size / sizeof(ElfW(Sym))};
  }
}

Module* ModuleFor(const void* kernel) {
  static auto* modules = new std::map<uintptr_t, Module>;  // by base address
  static auto* known = new std::map<const void*, Module*>;
  const auto found = known->find(kernel);
  if (found != known->end()) return found->second;
  Module module;
  Query query = {reinterpret_cast<uintptr_t>(kernel), &module};
  Module* result = nullptr;
  if (dl_iterate_phdr(FindModule, &query) == 1) {
    const auto [place, fresh] = modules->emplace(module.base, module);
    if (fresh) ReadSymbols(place->second);
    result = &place->second;
  }
  (*known)[kernel] = result;
  return result;
}

}  // namespace

const std::string& KernelName(const void* kernel) {
  static auto* names = new std::map<const void*, std::string>;
  const auto found = names->find(kernel);
  if (found != names->end()) return found->second;
  std::string name = "kernel at an unknown address";
  if (const Module* module = ModuleFor(kernel)) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(kernel) - module->base;
    const auto symbol = std::find_if(module->symbols.begin(), module->symbols.end(),
                                     [address](const ElfW(Sym) & s) {
                                       return s.st_value == address && s.st_shndx != SHN_UNDEF &&
                                              ELF64_ST_TYPE(s.st_info) == STT_FUNC;
                                     });
    if (symbol != module->symbols.end()) name = Demangled(module->names + symbol->st_name);
  }
  return names->emplace(kernel, name).first->second;
}

const std::vector<SharedArray>& SharedArrays(const void* kernel) {
  const Module* module = ModuleFor(kernel);
  const auto [place, fresh] = shared_arrays.try_emplace(module);
  std::vector<SharedArray>& arrays = place->second;
  if (!fresh || module == nullptr || module->tls_index == 0) return arrays;
  for (const ElfW(Sym) & symbol : module->symbols) {
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_TLS ||
        std::strncmp(module->names + symbol.st_name, "_ZZ", 3) != 0) {
      continue;
    }
    unsigned long index[2] = {module->tls_index, symbol.st_value};
    arrays.push_back({static_cast<char*>(__tls_get_addr(index)), symbol.st_size});
  }
  std::sort(arrays.begin(), arrays.end(),
            [](const SharedArray& a, const SharedArray& b) { return a.data < b.data; });
  return arrays;
}

const void* ModuleOf(const void* kernel) { return ModuleFor(kernel); }

}  // namespace onward::cuda_emu
