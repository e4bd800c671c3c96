# Makefile - builds fnn.  Everything made goes to build/.
#
#   make            the program, the libraries, the Lua module
#   make test       every test            make bench      the benchmarks
#   make examples   runs the examples; their pictures are in build/examples
#   make asan       program and tests under ASan and UBSan, in build/asan
#   make tsan       the same under TSan   make fuzz       the fuzz targets
#   make install    PREFIX= DESTDIR=      make uninstall  the same PREFIX
#   make install-strip  the same without what debuggers read
#   make clean
#
#   make CUDA=1        with kernels for NVIDIA cards, by nvcc, in build/cuda;
#                      CUDA_PATH=, NVCC=, NVCC_CCBIN= choose the toolkit
#   make CUDA=emulate  with the same kernels on the CPU, by g++, for tests, in
#                      build/emulate; CHECK=1 looks for races and wild
#                      accesses in them, in build/check; COVER=1 counts the
#                      lines that run, in build/cover
#
# CC= chooses the compiler, CFLAGS= and LDFLAGS= add to its flags, BENCH=--quick
# makes the benchmarks short (bench/run.lua has more options), ISAS=baseline
# leaves out the kernels for AVX2 and AVX-512, which builds faster, CAIRO=0
# the drawing library.

CC      ?= gcc
PREFIX  ?= /usr/local
BUILD   ?= build
# Lines for debuggers and profilers; OPT='-Og -g' is for stepping.
OPT     ?= -O3 -g1
STRIP   ?= strip
LUA     ?= $(firstword $(foreach p,lua5.4 lua54 lua-5.4 lua,$(shell \
             pkg-config --exists '$(p) >= 5.4' 2>/dev/null && echo $(p))))
comma   := ,
PKGS    := jansson libpng zlib

# JPEG images, where libjpeg is.
JPEG    := $(shell pkg-config --modversion libjpeg 2>/dev/null)
ifneq ($(JPEG),)
PKGS    += libjpeg
JPEG_CFLAGS := -DFNN_JPEG='"$(JPEG)"' $(shell pkg-config --cflags libjpeg)
endif

LUA_CFLAGS := $(shell pkg-config --cflags $(LUA))
LUA_LIBS   := $(shell pkg-config --libs $(LUA))
# The program takes Lua whole from the static library, where there is one.
LUA_WHOLE  := $(wildcard \
  $(shell pkg-config --variable=libdir $(LUA))/lib$(LUA).a)
LIBS    := $(shell pkg-config --libs $(PKGS)) -lm -lpthread

# Line editing in the program, where libedit is.
EDIT    := $(shell pkg-config --modversion libedit 2>/dev/null)
ifneq ($(EDIT),)
EDIT_LIBS := $(shell pkg-config --libs libedit)
EDIT_CFLAGS := -DFNN_EDIT='"$(EDIT)"' $(shell pkg-config --cflags libedit)
endif

# Downloads, where libcurl's headers are; the library itself is opened at run
# time.
ifneq ($(shell pkg-config --exists 'libcurl >= 7.66' 2>/dev/null && echo y),)
CURL_CFLAGS := -DFNN_CURL $(shell pkg-config --cflags libcurl)
endif

# Plots by cairo, likewise; CAIRO=0 is without.
ifneq ($(CAIRO),0)
ifneq ($(shell pkg-config --exists 'cairo >= 1.10' 2>/dev/null && echo y),)
CAIRO_CFLAGS := -DFNN_CAIRO $(shell pkg-config --cflags cairo)
endif
endif

VERSION := $(shell sed -n 's/^.define FNN_VERSION "\(.*\)"/\1/p' src/fnn.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wvla -Wpointer-arith -Wwrite-strings
# What a guard assigns is not read after its jump, which gcc cannot see.
ifeq ($(shell $(CC) -Wclobbered -Werror -xc -c /dev/null -o /dev/null \
  2>/dev/null && echo yes),yes)
WARN    += -Wno-clobbered
endif
CFLAGS  ?=
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS))
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(WERROR) -fPIC -fvisibility=hidden \
           -fno-math-errno -fno-trapping-math -fopenmp-simd -Wno-pass-failed \
           -pthread -MMD -MP \
           $(PKG_CFLAGS) $(SAN) $(CFLAGS)
LDFLAGS ?=

ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
# A copy of the kernels for each.
ISAS    ?= baseline $(if $(filter x86_64,$(ARCH)),avx2 avx512)
FLAGS_baseline :=
FLAGS_avx2     := -mavx2 -mfma -mf16c
FLAGS_avx512   := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c \
                  -mprefer-vector-width=512

KERNELS := $(filter-out src/cpu/device.c,$(wildcard src/cpu/*.c))
ENGINE  := $(filter-out $(KERNELS),$(wildcard src/*/*.c))
PROGRAM := $(addsuffix .c,$(addprefix lua/,fnn options call library repl edit \
             progress env))
BINDING := $(filter-out $(PROGRAM),$(wildcard lua/*.c))
SCRIPTS := $(wildcard lua/fnn/*.lua lua/fnn/*/*.lua)

obj      = $(patsubst %.c,$(BUILD)/%.o,$(1))
KOBJ    := $(foreach i,$(ISAS),$(foreach r,f32 f64,\
             $(patsubst src/cpu/%.c,$(BUILD)/cpu/$(i)-$(r)/%.o,$(KERNELS))))
EOBJ    := $(call obj,$(ENGINE)) $(KOBJ)
BOBJ    := $(call obj,$(BINDING)) $(BUILD)/lua/embed.o
POBJ    := $(call obj,$(PROGRAM))

# ---------------------------------------------------------------------------
# CUDA.  The rest of the engine is the same, and its objects are shared: only
# the products and the kernels go to a folder of their own, OUT.
# ---------------------------------------------------------------------------

OUT     := $(BUILD)
EMULATE_FLAGS := -std=c++17 -g1 -Wall -Wextra -fPIC -fvisibility=hidden \
           -fno-exceptions -fno-rtti -fno-strict-aliasing -ffp-contract=off \
           -MMD -MP -Icuda/emulate/shim
CUDA_OBJ = $(patsubst cuda/%.cu,$(OUT)/cuda/%.o,$(wildcard cuda/*.cu))

ifeq ($(CUDA),emulate)
OUT     := $(BUILD)/$(if $(CHECK),check,$(if $(COVER),cover,emulate))
CUDA_COMPILE = $(CXX) $(EMULATE_FLAGS) -O1 -fsanitize=alignment,bounds \
           $(if $(CHECK),-fsanitize=thread) $(if $(COVER),--coverage) \
           $(WERROR) -x c++
EMULATOR := $(patsubst cuda/%.cc,$(OUT)/cuda/%.o,$(wildcard cuda/emulate/*.cc))
COBJ    := $(CUDA_OBJ) $(EMULATOR)
CUDA_LIBS := -lstdc++ $(if $(COVER),--coverage)

else ifeq ($(CUDA),1)
# The toolkit (11.8 or later): CUDA_PATH or CUDA_HOME, the nvcc that is found,
# or where it is installed by default.  NVCC_CCBIN is the compiler of its host
# code, CUDA_ARCHS the compute capabilities.
OUT     := $(BUILD)/cuda
ifeq ($(CUDA_PATH)$(CUDA_HOME),)
NVCC    ?= $(firstword $(shell command -v nvcc) /usr/local/cuda/bin/nvcc)
TOOLKIT := $(abspath $(dir $(shell readlink -f $$(command -v $(NVCC) || \
             echo $(NVCC))))/..)
else
TOOLKIT := $(firstword $(CUDA_PATH) $(CUDA_HOME))
NVCC    ?= $(TOOLKIT)/bin/nvcc
endif
CUDART  := $(firstword $(wildcard $(addsuffix /libcudart_static.a,\
             $(addprefix $(TOOLKIT)/,lib64 targets/x86_64-linux/lib \
             targets/sbsa-linux/lib lib lib/x86_64-linux-gnu))))
CUDA_KNOWN := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
ifeq ($(and $(CUDA_KNOWN),$(CUDART)),)
$(error CUDA=1: no toolkit in '$(TOOLKIT)' with nvcc ('$(NVCC)') and \
  libcudart_static.a: set CUDA_PATH to where it is)
endif
CUDA_ARCHS ?= $(filter 75 80 86 89 90,$(CUDA_KNOWN))
CUDA_NEWEST := $(lastword $(CUDA_ARCHS))
empty   :=
space   := $(empty) $(empty)
CUDA_WARN := $(subst $(space),$(comma),$(strip -Wall -Wextra -fPIC \
           -fvisibility=hidden -fno-exceptions -fno-rtti \
           -fno-strict-aliasing $(WERROR)))
# Lines for compute-sanitizer and profilers.  Each architecture has its own
# code; PTX of the newest is for cards that come after it.
CUDA_COMPILE = $(NVCC) $(if $(NVCC_CCBIN),-ccbin $(NVCC_CCBIN)) -std=c++17 \
           -O3 -lineinfo -Xcompiler $(CUDA_WARN) -MMD -MP \
           $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
           -gencode arch=compute_$(CUDA_NEWEST),code=compute_$(CUDA_NEWEST) \
           $(NVCC_FLAGS) -x cu
COBJ    := $(CUDA_OBJ)
# Their symbols stay inside: a process may hold another copy of the runtime.
# What nvcc makes of a launch has static variables, which are initialized under
# guards of C++: these are in libsupc++, which is part of the host compiler.
CUDA_LIBS := $(CUDART) -lsupc++ \
  -Wl,--exclude-libs,libcudart_static.a:libsupc++.a -ldl -lrt
CUDA_PC  := $(CUDART) -lsupc++ -ldl -lrt

else ifneq ($(and $(filter-out 0,$(CUDA)),$(filter command,$(origin CUDA))),)
$(error CUDA=$(CUDA): expected 1 or emulate)
endif
EOBJ    += $(COBJ)
AOBJ    := $(EOBJ)

# From an archive the linker takes what is asked for, and nobody asks for what
# registers the cards: it is one object with what they register at.
ifneq ($(COBJ),)
REGISTER := $(BUILD)/src/core/device.o $(OUT)/cuda/device.o
AOBJ    := $(filter-out $(REGISTER),$(EOBJ)) $(OUT)/device.o
endif

$(OUT)/cuda/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(CUDA_COMPILE) -c $< -o $@

# The emulator itself: no instrumentation, the whole of C++.
$(OUT)/cuda/emulate/%.o: cuda/emulate/%.cc
	@mkdir -p $(@D)
	$(CXX) $(filter-out -fno-exceptions -fno-rtti,$(EMULATE_FLAGS)) -O2 \
	  $(WERROR) $(if $(CHECK),-DEMU_CHECK) -c $< -o $@

all: $(OUT)/fnn $(OUT)/fnn.so $(OUT)/libfnn.a $(OUT)/libfnn.so

$(OUT)/device.o: $(REGISTER)
	$(CC) -nostdlib -r -o $@ $^

$(OUT)/libfnn.a: $(AOBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(OUT)/libfnn.so.$(VERSION): $(EOBJ)
	$(CC) -shared -Wl,-soname,libfnn.so.$(SOVERSION) -Wl,-z,nodelete \
	  $(SAN) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(OUT)/libfnn.so: $(OUT)/libfnn.so.$(VERSION)
	ln -sf libfnn.so.$(VERSION) $(OUT)/libfnn.so.$(SOVERSION)
	ln -sf libfnn.so.$(SOVERSION) $@

# Both libraries are linked -z nodelete: lua_close, or a host's dlclose, must
# not unload code that threads still run.
# libfnn.so is beside it in build/, and two folders up where it is installed.
$(OUT)/fnn.so: $(BOBJ) $(OUT)/libfnn.so
	$(CC) -shared -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..' \
	  $(SAN) $(LDFLAGS) -o $@ $(BOBJ) -L$(OUT) -lfnn $(LIBS) $(CUDA_LIBS)

# The program holds engine and Lua, and exports Lua's API for C modules.
$(OUT)/fnn: $(POBJ) $(BOBJ) $(EOBJ)
	$(CC) -Wl,-E $(SAN) $(LDFLAGS) -o $@ $^ $(if $(LUA_WHOLE),\
	  -Wl$(comma)--whole-archive $(LUA_WHOLE) -Wl$(comma)--no-whole-archive,\
	  $(LUA_LIBS)) $(LIBS) $(CUDA_LIBS) $(EDIT_LIBS) -ldl

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/lua/%.o: lua/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Isrc $(LUA_CFLAGS) -c $< -o $@

$(BUILD)/src/cpu/device.o: ALL_CFLAGS += $(ISAS:%=-DISA_%)
$(OUT)/tests/winograd_test: ALL_CFLAGS += $(ISAS:%=-DISA_%)
$(BUILD)/src/io/download.o: ALL_CFLAGS += $(CURL_CFLAGS)
$(BUILD)/src/io/jpeg.o: ALL_CFLAGS += $(JPEG_CFLAGS)
$(BUILD)/src/io/canvas_cairo.o: ALL_CFLAGS += $(CAIRO_CFLAGS)
$(BUILD)/lua/edit.o: ALL_CFLAGS += $(EDIT_CFLAGS)
$(BUILD)/lua/env.o: ALL_CFLAGS += $(EDIT_CFLAGS) $(JPEG_CFLAGS) \
  -DFNN_FLAGS='"$(strip $(OPT) $(SAN) $(CFLAGS))"'

define KERNEL_RULE
$(BUILD)/cpu/$(1)-$(2)/%.o: src/cpu/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $(FLAGS_$(1)) -DCPU_ISA=$(1) $(3) -c $$< -o $$@
endef
$(foreach i,$(ISAS),$(eval $(call KERNEL_RULE,$(i),f32,)))
$(foreach i,$(ISAS),$(eval $(call KERNEL_RULE,$(i),f64,-DCPU_DOUBLE)))

# The Lua half as one C file of byte arrays.
$(BUILD)/lua/embed.c: $(SCRIPTS) scripts/embed
	@mkdir -p $(@D)
	scripts/embed $(SCRIPTS) > $@

$(BUILD)/lua/embed.o: $(BUILD)/lua/embed.c
	$(CC) $(ALL_CFLAGS) -Ilua -Isrc $(LUA_CFLAGS) -c $< -o $@

# ---------------------------------------------------------------------------
# Tests, checked builds, benchmarks
# ---------------------------------------------------------------------------

TESTS   := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/*.c))
HOSTS   := $(patsubst examples/embed/%.c,$(OUT)/embed/%,\
             $(wildcard examples/embed/*.c))
FUZZERS := $(patsubst %.c,$(OUT)/%,$(wildcard fuzz/*.c))
BENCHES := $(patsubst %.c,$(OUT)/%,$(wildcard bench/*.c))
CMOCKA   = $(shell pkg-config --cflags --libs cmocka)
CHECKED := -g1 -fno-omit-frame-pointer
UNDEFINED := undefined -fno-sanitize-recover=undefined

tests: $(TESTS) $(HOSTS)
fuzzers: $(FUZZERS)

# C tests see the private headers, the binding and Lua.
$(OUT)/tests/%: tests/%.c $(OUT)/libfnn.a $(BOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Isrc $(LUA_CFLAGS) $(LDFLAGS) -Wl,-E -o $@ $< $(BOBJ) \
	  $(OUT)/libfnn.a $(LUA_LIBS) $(CMOCKA) $(LIBS) $(CUDA_LIBS) -ldl

# The examples of hosts, as they are compiled against an installed fnn.
$(OUT)/embed/%: examples/embed/%.c $(OUT)/libfnn.a $(BOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Isrc -Ilua $(LUA_CFLAGS) $(LDFLAGS) -o $@ $< \
	  $(BOBJ) $(OUT)/libfnn.a $(LUA_LIBS) $(LIBS) $(CUDA_LIBS) -ldl

$(OUT)/fuzz/%: fuzz/%.c $(OUT)/libfnn.a $(BOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Isrc $(LUA_CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -Wl,-E \
	  -o $@ $< $(BOBJ) $(OUT)/libfnn.a $(LUA_LIBS) $(LIBS) $(CUDA_LIBS) -ldl

$(OUT)/bench/%: bench/%.c $(OUT)/libfnn.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(OUT)/libfnn.a $(LIBS) $(CUDA_LIBS)

# What a card is tested with: the program for the specs, the emulator's own
# tests, which need nothing of the engine, and what C sees of it.
cuda-tests: $(OUT)/fnn $(OUT)/tests/emulate/test $(OUT)/tests/device_test

$(OUT)/tests/emulate/%.o: tests/emulate/%.cu
	@mkdir -p $(@D)
	$(CUDA_COMPILE) $(if $(CHECK),-DEMU_CHECK) -c $< -o $@

$(OUT)/tests/emulate/test: $(patsubst tests/emulate/%.cu,\
    $(OUT)/tests/emulate/%.o,$(wildcard tests/emulate/*.cu)) $(EMULATOR)
	$(CXX) -o $@ $^ -lpthread $(CUDA_LIBS)

test: all tests
	scripts/test --no-setup

examples: all $(HOSTS)
	@scripts/examples --build $(OUT)

asan:
	$(MAKE) BUILD=build/asan OPT=-O1 \
	  SAN="-fsanitize=address,$(UNDEFINED) $(CHECKED)" all tests

tsan:
	$(MAKE) BUILD=build/tsan OPT=-O1 SAN="-fsanitize=thread $(CHECKED)" \
	  all tests

fuzz:
	$(MAKE) BUILD=build/fuzz CC=clang OPT=-O1 fuzzers \
	  SAN="-fsanitize=fuzzer-no-link,address,$(UNDEFINED) $(CHECKED)"

bench: all $(BENCHES)
	@for b in $(BENCHES); do $$b || exit; done
	$(OUT)/fnn bench/run.lua $(BENCH)

# ---------------------------------------------------------------------------
# Installing
# ---------------------------------------------------------------------------

LIBDIR  ?= $(PREFIX)/lib
CMOD    ?= $(LIBDIR)/lua/5.4
SHARE   := $(DESTDIR)$(PREFIX)/share
HEADERS := $(wildcard src/*.h) lua/fnnlib.h

$(BUILD)/fnn.1: docs/fnn.1.scd
	@mkdir -p $(@D)
	scdoc < $< > $@

install: all $(if $(shell command -v scdoc),$(BUILD)/fnn.1)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(CMOD) \
	  $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include \
	  $(SHARE)/man/man1 $(SHARE)/doc/fnn $(SHARE)/fnn/library
	install -m 755 $(OUT)/fnn $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include
	install -m 644 $(OUT)/libfnn.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(OUT)/libfnn.so.$(VERSION) $(DESTDIR)$(LIBDIR)
	cp -P $(OUT)/libfnn.so.$(SOVERSION) $(OUT)/libfnn.so \
	  $(DESTDIR)$(LIBDIR)
	install -m 755 $(OUT)/fnn.so $(DESTDIR)$(CMOD)
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|' \
	  -e 's|@VERSION@|$(VERSION)|; s|@PKGS@|$(PKGS)|' \
	  -e 's|@CUDA@| $(CUDA_PC)|; s| *$$||' \
	  fnn.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/fnn.pc
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@CMOD@|$(CMOD)|; s|@LUA@|$(LUA)|' \
	  -e 's|@VERSION@|$(VERSION)|' fnn-lua.pc.in \
	  > $(DESTDIR)$(LIBDIR)/pkgconfig/fnn-lua.pc
	test ! -f $(BUILD)/fnn.1 || \
	  install -m 644 $(BUILD)/fnn.1 $(SHARE)/man/man1
	install -m 644 library/fnn.d.lua $(SHARE)/fnn/library
	cp -R README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE docs \
	  examples $(SHARE)/doc/fnn

# Symbols stay, for links and for profilers.
install-strip: install
	$(STRIP) --strip-debug $(DESTDIR)$(PREFIX)/bin/fnn \
	  $(DESTDIR)$(LIBDIR)/libfnn.a $(DESTDIR)$(LIBDIR)/libfnn.so.$(VERSION) \
	  $(DESTDIR)$(CMOD)/fnn.so

# The Lua module and the engine it needs, in one folder: for LuaRocks.
install-module: $(OUT)/fnn.so
	install -d $(DESTDIR)$(CMOD)
	install -m 755 $(OUT)/fnn.so $(DESTDIR)$(CMOD)
	install -m 755 $(OUT)/libfnn.so.$(VERSION) \
	  $(DESTDIR)$(CMOD)/libfnn.so.$(SOVERSION)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/fnn $(DESTDIR)$(LIBDIR)/libfnn.* \
	  $(DESTDIR)$(CMOD)/fnn.so \
	  $(DESTDIR)$(LIBDIR)/pkgconfig/fnn.pc \
	  $(DESTDIR)$(LIBDIR)/pkgconfig/fnn-lua.pc \
	  $(addprefix $(DESTDIR)$(PREFIX)/include/,$(notdir $(HEADERS))) \
	  $(SHARE)/man/man1/fnn.1
	rm -rf $(SHARE)/doc/fnn $(SHARE)/fnn

clean:
	rm -rf $(BUILD)

.DELETE_ON_ERROR:
.PHONY: all tests cuda-tests fuzzers test examples asan tsan fuzz bench \
  install install-strip install-module uninstall clean
# But for a system that scripts/rehearse keeps there, which has .d of its own.
-include $(shell find $(BUILD) -name rehearse -prune -o \
  -type f -name '*.d' -print 2>/dev/null)
