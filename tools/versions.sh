# Versions of what comes from PyPI; sourced by the other scripts. cmake/Dependencies.cmake names the same.
onnx=1.23.2 onednn=2023.2.0 cmake=4.1.2
