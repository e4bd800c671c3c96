-- optim.lua - what of the optimizers is written in Lua.

local _, load = ...

load "optim/state"      -- state_dict, save, load
load "optim/optimizer"  -- classes: optim.optimizer
load "optim/groups"     -- which weights decay
load "optim/lookahead"  -- Lookahead
load "optim/average"    -- Ema, SWA
load "optim/statistics" -- update_batch_norm
load "optim/lbfgs"      -- LBFGS
load "optim/scaler"     -- GradScaler
