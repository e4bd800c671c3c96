rockspec_format = "3.0"
package = "fnn"
version = "scm-1"
source = { url = "git+file://." }
description = {
  summary = "Machine learning for Lua: tensors, gradients, models",
  detailed = [[
A C engine with tensors, automatic differentiation, modules, optimizers and
datasets, as a Lua module.  Needs jansson, libpng and zlib with their headers,
GCC or clang, GNU make and pkg-config.]],
  license = "MIT",
  labels = { "machine-learning", "tensor", "autograd" },
}
supported_platforms = { "unix" }
dependencies = { "lua >= 5.4, < 5.5" }
external_dependencies = {
  JANSSON = { header = "jansson.h" },
  LIBPNG = { header = "png.h" },
  ZLIB = { header = "zlib.h" },
}
test = { type = "busted" }
build = {
  type = "make",
  build_target = "build/fnn.so",
  install_target = "install-module",
  build_variables = { CC = "$(CC)", OPT = "-O3" },
  install_variables = { CMOD = "$(LIBDIR)" },
}
