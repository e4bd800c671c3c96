-- What optimizers and averages keep: by name, saved, loaded, refused.

local fnn = require "fnn"
local optim = fnn.optim
local support = require "spec.support.optim"

local function fails (text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(message:find(text, 1, true), message)
end

local path
before_each(function () path = os.tmpname() end)
after_each(function () os.remove(path) end)

local function params ()
  local g = fnn.Generator(5)
  return { fnn.Param(fnn.randn(3, 4, { generator = g })),
           fnn.Param(fnn.randn(4, 2, { generator = g })) }
end

local x = fnn.randn(6, 3, { generator = fnn.Generator(6) })

local function train (opt, list, steps)
  for _ = 1, steps do
    support.step(opt, function ()
      return x:matmul(list[1]):tanh():matmul(list[2]):square():mean()
    end)
  end
end

local function same_bits (a, b)
  for i, p in ipairs(a) do
    assert.is_true(p:detach():eq(b[i]:detach()):all():item())
  end
end

describe("the state of", function ()
  for _, m in ipairs(support.all()) do
    it(m[1] .. " goes on, saved and loaded, bit for bit", function ()
      local whole, first, second = params(), params(), params()
      local opt = m[2](whole)
      train(opt, whole, 20)
      local half = m[2](first)
      train(half, first, 10)
      half:save(path)
      for i, p in ipairs(second) do p:set(first[i]) end
      local other = m[2](second)
      other:set_learning_rate(0.7)
      other:load(path)
      assert.equal(half:learning_rate(), other:learning_rate())
      train(other, second, 10)
      same_bits(whole, second)
      train(half, first, 10)  -- and what was saved from is not disturbed
      same_bits(whole, first)
    end)

    it(m[1] .. " does not fit another", function ()
      local list = params()
      local opt = m[2](list)
      train(opt, list, 2)
      local dict = opt:state_dict()
      local fewer = m[2] { params()[1] }
      fails("the state of 2 parameters does not fit 1", fewer.load_state_dict,
            fewer, dict)
      local wider = m[2] { params()[1], fnn.Param(fnn.ones(4, 3)) }
      fails("parameter 2: expected shape (4, 3), got (4, 2)",
            wider.load_state_dict, wider, dict)
      local other = opt:name() == "SGD" and optim.Adam(list) or
                    optim.SGD(list)
      fails(("the state of %s does not fit %s"):format(opt:name(),
                                                       other:name()),
            other.load_state_dict, other, dict)
    end)
  end

  it("each has PyTorch's names", function ()
    local names = {
      SGD = { "momentum_buffer" }, Adam = { "exp_avg", "exp_avg_sq" },
      AdamW = { "exp_avg", "exp_avg_sq" }, RMSprop = { "square_avg" },
      Adagrad = { "sum" }, Adadelta = { "acc_delta", "square_avg" },
      RAdam = { "exp_avg", "exp_avg_sq" }, Adamax = { "exp_avg", "exp_inf" },
      NAdam = { "exp_avg", "exp_avg_sq" }, Lion = { "exp_avg" },
      Adafactor = { "col_var", "row_var" }, Muon = { "momentum_buffer" },
    }
    for name, want in pairs(names) do
      local p = params()[1]
      local options = name == "SGD" and { momentum = 0.9 } or nil
      local opt = optim[name]({ p }, options)
      support.step(opt, function () return (p * p):sum() end)
      local dict = opt:state_dict()
      for i, key in ipairs(want) do assert.equal("0." .. key, dict[i]) end
      assert.equal(#want, #dict)
      local kept = dict[".state"]
      assert.equal(name, kept.name)
      assert.equal(1, kept.params[1].values.step)
      assert.same({ 3, 4 }, kept.params[1].shape)
      assert.equal(opt:learning_rate(), kept.groups[1].options.lr)
      assert.equal(1, kept.groups[1].params)
    end
  end)

  it("Adafactor is rows and columns, or whole where there are none",
     function ()
    local p, q = fnn.Param(fnn.ones(2, 3, 4)), fnn.Param(fnn.ones(5))
    local opt = optim.Adafactor { p, q }
    support.step(opt, function () return (p * p):sum() + (q * q):sum() end)
    local dict = opt:state_dict()
    assert.same({ 2, 3, 1 }, dict["0.row_var"]:shape())
    assert.same({ 2, 1, 4 }, dict["0.col_var"]:shape())
    assert.same({ 5 }, dict["1.variance"]:shape())
  end)
end)

describe("load_state_dict", function ()
  local function trained ()
    local list = params()
    local opt = optim.Adam(list, { lr = 0.25 })
    train(opt, list, 3)
    return opt, list
  end

  it("changes nothing when it refuses", function ()
    local from = trained()
    local opt, list = trained()
    local before = opt:state_dict()["1.exp_avg"]:clone()
    local function refused (text, change)
      local dict = from:state_dict()
      dict[".state"].groups[1].options.lr = 0.5
      change(dict)
      fails(text, opt.load_state_dict, opt, dict)
      assert.equal(0.25, opt:learning_rate())
      assert.is_true(opt:state_dict()["1.exp_avg"]:eq(before):all():item())
    end
    train(from, list, 1)
    refused("exp_avg_sq of parameter 2: expected shape (4, 2), got (3)",
            function (d) d["1.exp_avg_sq"] = fnn.ones(3) end)
    refused("the state of parameter 1 of shape (3, 4) has no exp_avg",
            function (d) table.remove(d, 1) end)
    refused("keeps no square_avg of a parameter (parameter 1)", function (d)
      d[#d + 1] = "0.square_avg"
      d["0.square_avg"] = fnn.ones(3, 4)
    end)
    refused("has no place for '7.exp_avg'", function (d)
      d[#d + 1] = "7.exp_avg"
      d["7.exp_avg"] = fnn.ones(3, 4)
    end)
    refused("must not be negative",
            function (d) d[".state"].groups[1].options.eps = -1 end)
    refused("unknown option 'momentum'",
            function (d) d[".state"].groups[1].options.momentum = 1 end)
    refused("expected what state_dict returns",
            function (d) d[".state"] = nil end)
    refused("group 1 has 2 parameters, 1 in the state",
            function (d) d[".state"].groups[1].params = 1 end)
    fails("expected a table", opt.load_state_dict, opt, 1)
  end)

  it("makes copies", function ()
    local from, list = trained()
    local dict = from:state_dict()
    local other = params()
    local opt = optim.Adam(other)
    opt:load_state_dict(dict)
    local before = opt:state_dict()["0.exp_avg"]:clone()
    train(from, list, 2)
    assert.is_true(opt:state_dict()["0.exp_avg"]:eq(before):all():item())
  end)

  it("takes Adam's for AdamW no more than PyTorch's classes do", function ()
    local from, list = trained()
    local opt = optim.AdamW(list)
    fails("the state of Adam does not fit AdamW", opt.load_state_dict, opt,
          from:state_dict())
  end)

  it("says what is no state in what looks like one", function ()
    local list = params()
    local opt = optim.Adam(list)
    local function change (f)
      local dict = opt:state_dict()
      f(dict, dict[".state"])
      return dict
    end
    local function refused (text, f)
      fails(text, opt.load_state_dict, opt, change(f))
      fails(text, opt.check_state_dict, opt, change(f))
    end
    refused("Adam: parameter 1: expected shape (3, 4), got nil",
            function (_, v) v.params[1] = 7 end)
    refused("Adam: parameter 2: expected a table of values, got a number",
            function (_, v) v.params[2].values = 7 end)
    refused("Adam: group 1 has 2 parameters, nil in the state",
            function (_, v) v.groups[1] = 7 end)
    refused("Adam: group 1 has 2 parameters, nil in the state",
            function (_, v) v.groups[1].options = 7 end)
    refused("Adam has no place for '99999999999999999999.exp_avg'",
            function (dict)
      local name = "99999999999999999999.exp_avg"
      dict[1], dict[name] = name, fnn.ones(1)
    end)
  end)

  it("refuses a file that is none", function ()
    fnn.io.save_safetensors(path, { { "0.exp_avg", fnn.ones(2) } })
    local opt = trained()
    fails("expected the state of an optimizer", opt.load, opt, path)
  end)

  it("moves with the Params", function ()
    local opt, list = trained()
    for _, p in ipairs(list) do p:to("f64") end
    assert.equal("f64", opt:state_dict()["0.exp_avg"]:dtype())
    local f32 = params()
    local other = optim.Adam(f32)
    other:load_state_dict(opt:state_dict())
    assert.equal("f32", other:state_dict()["0.exp_avg"]:dtype())
  end)

  it("counts no more steps than a double does", function ()
    local opt = trained()
    local s = opt:_states()
    s[2].step = math.maxinteger
    fails("Adam: parameter 2 has taken 9223372036854775807 steps (expected " ..
          "0 .. 2^53)", opt._load, opt, s)
  end)
end)
