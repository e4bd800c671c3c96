-- optim.lua - the optimizers there are, with the options that specs train by.

local fnn = require "fnn"
local optim = fnn.optim

local support = {}

-- A maker by name: what trains least squares below 1e-3 in 1500 steps.
support.makers = {
  { "SGD", { lr = 0.1 } },
  { "SGD", { lr = 0.02, momentum = 0.9, nesterov = true } },
  { "Adam", { lr = 0.05 } },
  { "Adam", { lr = 0.05, amsgrad = true } },
  { "AdamW", { lr = 0.05 } },
  { "RMSprop", { lr = 0.01 } },
  { "RMSprop", { lr = 0.01, centered = true, momentum = 0.9 } },
  { "Adagrad", { lr = 0.5 } },
  { "Adadelta", {} },
  { "RAdam", { lr = 0.05 } },
  { "NAdam", { lr = 0.05 } },
  { "Adamax", { lr = 0.05 } },
  { "Lion", { lr = 0.005 } },
  { "Adafactor", { lr = 0.05 } },
  { "Muon", { lr = 0.002, weight_decay = 0 } },
}

-- { name, make (params) } of all, wrappers too.
function support.all ()
  local list = {}
  for _, m in ipairs(support.makers) do
    local text = {}
    for key, v in pairs(m[2]) do
      text[#text + 1] = (" %s=%s"):format(key, tostring(v))
    end
    table.sort(text)
    list[#list + 1] = { m[1] .. table.concat(text), function (params)
      return optim[m[1]](params, m[2])
    end }
  end
  list[#list + 1] = { "Lookahead", function (params)
    return optim.Lookahead(optim.Adam(params, { lr = 0.05 }))
  end }
  local Sign = optim.optimizer("Sign", { lr = 0.005, beta = 0.9 })
  function Sign:update (p, g, state, group)
    state.mean = state.mean or fnn.zeros_like(g)
    state.mean:lerp_(g, 1 - group.beta)
    p:sub_(state.mean:sign() * group.lr)
  end
  list[#list + 1] = { "Sign", Sign }
  list[#list + 1] = { "LBFGS", function (params)
    return optim.LBFGS(params, { max_iter = 4 })
  end }
  list[#list + 1] = { "LBFGS strong_wolfe", function (params)
    return optim.LBFGS(params, { line_search_fn = "strong_wolfe",
                                 max_iter = 4 })
  end }
  return list
end

-- Least squares of 64 points of 3 numbers: a loss of a Param (3, 1).
function support.least_squares (dtype)
  local g = fnn.Generator(7)
  local x = fnn.randn(64, 3, { generator = g, dtype = dtype })
  local w = fnn.tensor({ { 1.5 }, { -2 }, { 0.5 } }, { dtype = dtype })
  local y = x:matmul(w)
  return function (p) return (x:matmul(p) - y):square():mean() end
end

-- One step down loss(); returns what it was.
function support.step (opt, loss)
  local value
  local function closure ()
    opt:zero_grad()
    local l = loss()
    l:backward()
    value = value or l:item()
    return l
  end
  if opt:name() == "LBFGS" then opt:step(closure)
  else
    closure()
    opt:step()
  end
  return value
end

return support
