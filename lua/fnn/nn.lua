-- nn.lua - modules: their classes, the trees they form, layers, containers.
--
-- A model is a tree of modules, which are userdata of one class whether a
-- layer is made in C or in Lua:
--
--   local Residual = nn.module "Residual"
--   function Residual:init (inner) self.inner = inner end
--   function Residual:forward (x) return x + self.inner(x):relu() end
--
--   local model = nn.Sequential(Residual(nn.Linear(8, 8)), nn.Linear(8, 2))

local _, load = ...

load "nn/module"      -- classes and fields
load "nn/tree"        -- walks: parameters, to, train, freeze
load "nn/state"       -- state_dict, save, load
load "nn/show"        -- print(model), fnn.summary
load "nn/containers"  -- Sequential, ModuleList, ModuleDict
load "nn/layers"      -- Linear and all that is made in C
load "nn/recurrent"   -- RNN, LSTM, GRU
load "nn/images"      -- pools, resizing, channels dropped out
load "nn/losses"      -- functions and modules
load "nn/init"        -- laws of initial weights
load "nn/positions"   -- rotary, sinusoidal, learned, ALiBi
load "nn/attention"   -- MultiHeadAttention
load "nn/transformer" -- layers and stacks of it
load "nn/kv_cache"    -- what generation has read
load "nn/vision"      -- VisionTransformer

load "nn/module".check_methods()
