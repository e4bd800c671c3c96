# Makefile - builds fnn.  Everything made goes to build/.
#
#   make            the program, the libraries, the Lua module
#   make test       every test            make bench    the benchmarks
#   make asan       the program and tests under ASan and UBSan, in build/asan
#   make fuzz       the fuzz targets      make install  PREFIX= DESTDIR=
#   make clean

CC      ?= gcc
PREFIX  ?= /usr/local
BUILD   ?= build
OPT     ?= -O3 -g
LUA     ?= $(firstword $(foreach p,lua5.4 lua54 lua-5.4 lua,\
             $(shell pkg-config --exists '$(p) >= 5.4' 2>/dev/null && echo $(p))))
PKGS    := jansson libpng zlib
LUA_CFLAGS := $(shell pkg-config --cflags $(LUA))
LUA_LIBS   := $(shell pkg-config --libs $(LUA))
LIBS    := $(shell pkg-config --libs $(PKGS)) -lm -lpthread

VERSION := $(shell sed -n 's/^.define FNN_VERSION "\(.*\)"/\1/p' src/fnn.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wvla -Wpointer-arith -Wwrite-strings
CFLAGS  ?=
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden \
           -fno-math-errno -fno-trapping-math -pthread -MMD -MP \
           $(shell pkg-config --cflags $(PKGS)) $(SAN) $(CFLAGS)
LDFLAGS ?=

ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ifeq ($(ARCH),x86_64)
ISAS    := baseline avx2 avx512
endif
ISAS    ?= baseline
FLAGS_baseline :=
FLAGS_avx2     := -mavx2 -mfma -mf16c
FLAGS_avx512   := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c \
                  -mprefer-vector-width=512

KERNELS := $(filter-out src/cpu/device.c,$(wildcard src/cpu/*.c))
ENGINE  := $(filter-out $(KERNELS),$(wildcard src/*/*.c))
BINDING := $(filter-out lua/fnn.c lua/repl.c,$(wildcard lua/*.c))
PROGRAM := $(wildcard lua/fnn.c lua/repl.c)
SCRIPTS := $(wildcard lua/fnn/*.lua)

obj      = $(patsubst %.c,$(BUILD)/%.o,$(1))
KOBJ    := $(foreach i,$(ISAS),$(foreach r,f32 f64,\
             $(patsubst src/cpu/%.c,$(BUILD)/cpu/$(i)-$(r)/%.o,$(KERNELS))))
EOBJ    := $(call obj,$(ENGINE)) $(KOBJ)
BOBJ    := $(call obj,$(BINDING)) $(BUILD)/lua/embed.o
POBJ    := $(call obj,$(PROGRAM))

all: $(BUILD)/fnn $(BUILD)/fnn.so $(BUILD)/libfnn.a $(BUILD)/libfnn.so

$(BUILD)/libfnn.a: $(EOBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libfnn.so.$(VERSION): $(EOBJ)
	$(CC) -shared -Wl,-soname,libfnn.so.$(SOVERSION) $(SAN) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libfnn.so: $(BUILD)/libfnn.so.$(VERSION)
	ln -sf libfnn.so.$(VERSION) $(BUILD)/libfnn.so.$(SOVERSION)
	ln -sf libfnn.so.$(SOVERSION) $@

# Linked -z nodelete: lua_close must not unload code that threads still run.
$(BUILD)/fnn.so: $(BOBJ) $(BUILD)/libfnn.so
	$(CC) -shared -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' $(SAN) $(LDFLAGS) \
	  -o $@ $(BOBJ) -L$(BUILD) -lfnn $(LIBS)

# The program holds engine and Lua, and exports Lua's API for C modules.
$(BUILD)/fnn: $(POBJ) $(BOBJ) $(EOBJ)
	$(CC) -Wl,-E $(SAN) $(LDFLAGS) -o $@ $^ $(LUA_LIBS) $(LIBS) $(EDIT_LIBS) -ldl

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/lua/%.o: lua/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Isrc $(LUA_CFLAGS) -c $< -o $@

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

clean:
	rm -rf $(BUILD)

.PHONY: all clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
