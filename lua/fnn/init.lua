-- init.lua - loads the parts of the library that are written in Lua.
local _, load = ...

load "nn"
load "data"
load "grid"
load "gradcheck"
load "function"
load "optim/laws"
load "optim/plateau"
load "metrics"
load "fit"
load "network"
