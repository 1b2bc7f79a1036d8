// SPDX-License-Identifier: Apache-2.0
// ELF symbol tables of loaded modules.
#include "tests/cuda_emu/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

extern "C" void* __tls_get_addr(unsigned long index[2]);

namespace onward::cuda_emu {
namespace {

struct Module {
  uintptr_t base = 0;
  std::string path;
  unsigned long tls_index = 0;
  std::map<uintptr_t, std::string> functions;  // address in the file -> name
  struct Variable {
    std::string name;
    size_t offset, bytes;
  };
  std::vector<Variable> shared;
};

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

void ReadSymbols(Module& module) {
  std::ifstream stream(module.path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  if (file.size() < sizeof(ElfW(Ehdr))) return;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = file.data() + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
    for (size_t s = 0; s < sections[i].sh_size / sizeof(ElfW(Sym)); ++s) {
      const ElfW(Sym)& symbol = symbols[s];
      const char* name = names + symbol.st_name;
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC) module.functions.emplace(symbol.st_value, name);
      if (type == STT_TLS && std::strncmp(name, "_ZZ", 3) == 0) {
        module.shared.push_back({Demangled(name), symbol.st_value, symbol.st_size});
      }
    }
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
  if (Module* module = ModuleFor(kernel)) {
    const auto symbol = module->functions.find(reinterpret_cast<uintptr_t>(kernel) - module->base);
    if (symbol != module->functions.end()) name = Demangled(symbol->second.c_str());
  }
  return names->emplace(kernel, name).first->second;
}

std::vector<SharedArray> SharedArrays(const void* kernel) {
  std::vector<SharedArray> arrays;
  const Module* module = ModuleFor(kernel);
  if (module == nullptr || module->tls_index == 0) return arrays;
  for (const Module::Variable& variable : module->shared) {
    unsigned long index[2] = {module->tls_index, variable.offset};
    arrays.push_back({variable.name, static_cast<char*>(__tls_get_addr(index)), variable.bytes});
  }
  return arrays;
}

const void* ModuleOf(const void* kernel) { return ModuleFor(kernel); }

}  // namespace onward::cuda_emu
