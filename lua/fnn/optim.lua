-- optim.lua - what of the optimizers is written in Lua.

local _, load = ...

load "optim/schedule"  -- learning rates by the step
