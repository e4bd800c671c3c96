-- init.lua - loads the parts of the library that are written in Lua.
local _, load = ...

load "nn"
load "optim"
load "data"
load "grid"
load "gradcheck"
