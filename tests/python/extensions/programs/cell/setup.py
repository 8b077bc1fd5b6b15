from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="cell_extension",
    version="1.0",
    ext_modules=[CppExtension("cell_extension", ["cell.cpp"], extra_compile_args={"cxx": ["-O0", "-std=c++17"]})],
    cmdclass={"build_ext": BuildExtension},
)
