-- schedule_spec.lua - learning rates by the step, by hand and beside PyTorch.

local fnn = require "fnn"
local optim = fnn.optim
local fixture = require "spec.fixtures.schedule"

local function fails(text, f, ...)
  assert.error_matches(function(...) f(...) end, text, 1, true, ...)
end

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local function evaluate(text)
  return assert(load("local optim = ...; return " .. text))(optim)
end

-- A schedule's rates: pairs of a step and a value.
local function follows(schedule, list)
  for i = 1, #list, 2 do
    assert.near(list[i + 1], schedule(list[i]), 1e-12, "step " .. list[i])
  end
end

describe("schedules beside PyTorch", function()
  for _, case in ipairs(fixture.cases) do
    it(case[1], function()
      local schedule = evaluate(case[1])
      for i, rate in ipairs(case[2]) do
        assert.near(rate, schedule(i - 1), 1e-12, "step " .. i - 1)
      end
    end)
  end

  for _, case in ipairs(fixture.plateaus) do
    it("ReduceOnPlateau " .. case[1], function()
      local schedule = evaluate("optim.ReduceOnPlateau(0.5, " .. case[1] .. ")")
      for i, value in ipairs(fixture.values) do
        assert.near(case[2][i], schedule:update(value), 1e-12, "value " .. i)
        assert.equal(schedule:update(value), schedule(i))
        -- Told twice: start again up to here.
        schedule:reset()
        for k = 1, i do schedule:update(fixture.values[k]) end
      end
    end)
  end
end)

describe("schedules by hand", function()
  it("Constant", function()
    follows(optim.Constant(0.3), { 0, 0.3, 1e9, 0.3 })
  end)

  it("StepDecay", function()
    follows(optim.StepDecay(1, 10, 0.5), { 9, 1, 10, 0.5, 20, 0.25 })
  end)

  it("CosineAnnealing, flat behind its end", function()
    follows(optim.CosineAnnealing(1, 100),
            { 0, 1, 50, 0.5, 100, 0, 101, 0, 1e6, 0 })
    follows(optim.CosineAnnealing(1, 100, { floor = 0.2 }),
            { 0, 1, 50, 0.6, 100, 0.2, 300, 0.2 })
  end)

  it("Warmup of the inner step", function()
    local flat = optim.Warmup(optim.Constant(1), 10)
    follows(flat, { 0, 0.1, 9, 1, 50, 1 })
    -- The inner schedule goes on from where it is, not from its start.
    local steps = optim.Warmup(optim.StepDecay(1, 5, 0.5), 10)
    follows(steps, { 4, 0.5, 5, 0.3, 9, 0.5, 10, 0.25 })
    follows(optim.Warmup(function(s) return 2 * s end, 4), { 1, 1, 3, 6, 4, 8 })
    follows(optim.Warmup(optim.Constant(1), 0), { 0, 1 })
  end)

  it("OneCycle", function()
    follows(optim.OneCycle(1, 100),
            { 0, 0.04, 15, 0.52, 30, 1, 65, 0.50005, 100, 1e-4, 1000, 1e-4 })
  end)

  it("OneCycle at its edges", function()
    follows(optim.OneCycle(1, 0), { 0, 1e-4, 5, 1e-4 })
    follows(optim.OneCycle(1, 1), { 0, 1, 1, 1e-4 })
    local o = { warmup_fraction = 1 }
    follows(optim.OneCycle(1, 16777219, o), { 16777219, 1e-4 })
    assert.is_true(optim.OneCycle(1, 16777219, o)(16777218) < 1)
    follows(optim.OneCycle(1, 10, { warmup_fraction = -0.0 }), { 0, 1 })
  end)

  it("WarmupCosine, to a tenth of the peak unless told", function()
    local schedule = optim.WarmupCosine(1, 10, 110)
    follows(schedule, { 0, 0.1, 4, 0.5, 9, 1, 10, 1, 60, 0.55, 110, 0.1, 220,
                        0.1 })
    follows(optim.WarmupCosine(1, 10, 110, { floor = 0.5 }),
            { 60, 0.75, 110, 0.5 })
    follows(optim.WarmupCosine(2, 0, 100, 0), { 0, 2, 50, 1, 100, 0 })
  end)

  it("WSD", function()
    follows(optim.WSD(1, 10, 50, 20),
            { 0, 0.1, 9, 1, 10, 1, 59, 1, 60, 1, 65, 0.75, 70, 0.5, 80, 0,
              200, 0 })
    follows(optim.WSD(1, 0, 10, 100, { shape = "sqrt", floor = 0.1 }),
            { 9, 1, 35, 0.55, 110, 0.1 })
    follows(optim.WSD(1, 0, 0, 100, { shape = "cosine" }),
            { 0, 1, 50, 0.5, 25, (1 + math.sqrt(0.5)) / 2 })
  end)

  it("CosineRestarts at steps far on", function()
    local schedule = optim.CosineRestarts(1, 10, 2)
    follows(schedule, { 0, 1, 5, 0.5, 10, 1, 20, 0.5, 30, 1, 70, 1, 110, 0.5 })
    assert.is_true(schedule(1e15) <= 1)
  end)

  it("are the same in any order of steps, and at parts of one", function()
    for _, text in ipairs { "Constant(1)", "OneCycle(1, 50)",
                            "CosineRestarts(1, 7, 2)", "WSD(1, 3, 5, 9)",
                            "Warmup(optim.StepDecay(1, 4), 3)" } do
      local schedule = evaluate("optim." .. text)
      local first = {}
      for s = 0, 60 do first[s] = schedule(s) end
      for s = 60, 0, -1 do assert.equal(first[s], schedule(s)) end
      assert.is_number(schedule(2.5))
    end
    follows(optim.Polynomial(1, 10), { 2.5, 0.75 })
  end)
end)

describe("a schedule", function()
  it("says what is wrong with its numbers", function()
    raises("StepDecay: every: expected a finite number above 0, got 0",
           optim.StepDecay, 1, 0)
    raises("StepDecay: every: expected a finite number above 0, got nil",
           optim.StepDecay, 1)
    raises("OneCycle: warmup_fraction: expected a number from 0 to 1, got 1.5",
           optim.OneCycle, 1, 10, { warmup_fraction = 1.5 })
    for _, v in ipairs { -0.1, 0 / 0, math.huge, "half" } do
      raises("OneCycle: warmup_fraction: expected a number from 0 to 1",
             optim.OneCycle, 1, 10, { warmup_fraction = v })
    end
    raises("Constant: base: expected a finite number of 0 or more, got -1",
           optim.Constant, -1)
    raises("CosineRestarts: mult: expected an integer of 1 or more, got 1.5",
           optim.CosineRestarts, 1, 10, 1.5)
    raises("MultiStep: milestones: expected a list of steps that rise",
           optim.MultiStep, 1, { 4, 2 })
    raises("WSD: shape: expected 'linear' or 'cosine' or 'sqrt', got 'round'",
           optim.WSD, 1, 1, 1, 1, { shape = "round" })
    raises("Warmup: inner: expected a schedule (a function of the step), got 3",
           optim.Warmup, 3, 10)
    raises("OneCycle: unknown option 'warmup_fractoin' (did you mean " ..
           "'warmup_fraction'?)", optim.OneCycle, 1, 10,
           { warmup_fractoin = 0.1 })
    raises("Constant: expected at most 1 arguments, got 2", optim.Constant, 1,
           2)
    raises("Sequential: 2 schedules need 1 milestones, got 2",
           optim.Sequential, { optim.Constant(1), optim.Constant(2) }, { 1, 2 })
    raises("Chained: schedule 2: expected a schedule", optim.Chained,
           optim.Constant(1), 5)
    raises("Chained: expected a schedule, got none", optim.Chained)
  end)

  it("has its numbers as fields, checked when they change", function()
    local schedule = optim.StepDecay(1, 10)
    assert.equal(10, schedule.every)
    schedule.every = 5
    assert.near(0.1, schedule(5), 1e-15)
    fails("StepDecay: every: expected a finite number above 0, got 0",
          function() schedule.every = 0 end)
    fails("StepDecay has no field 'evry' (did you mean 'every'?)",
          function() schedule.evry = 5 end)
    local cycle = optim.OneCycle(1, 10)
    fails("OneCycle: warmup_fraction: expected a number from 0 to 1, got nan",
          function() cycle.warmup_fraction = 0 / 0 end)
    assert.equal(0.3, cycle.warmup_fraction)
  end)

  it("takes steps that count from 0", function()
    for _, step in ipairs { -1, 0 / 0, math.huge, "1" } do
      fails("Constant: expected a step (they count from 0), got ",
            optim.Constant(1), step)
    end
  end)

  it("is printed with its numbers", function()
    assert.equal("Warmup { inner = StepDecay { base = 1, every = 5, gamma = " ..
                 "0.1 }, steps = 3 }",
                 tostring(optim.Warmup(optim.StepDecay(1, 5), 3)))
    assert.equal("MultiStep { base = 1, milestones = { 2, 4 }, gamma = 0.5 }",
                 tostring(optim.MultiStep(1, { 2, 4 }, 0.5)))
  end)
end)

describe("ReduceOnPlateau", function()
  local options = { patience = 1, cooldown = 2, factor = 0.5 }

  it("goes on from its state", function()
    local a = optim.ReduceOnPlateau(1, options)
    for i = 1, 9 do a:update(fixture.values[i]) end
    local b = optim.ReduceOnPlateau(1, options)
    assert.equal(b, b:load_state_dict(a:state_dict()))
    for i = 10, #fixture.values do
      assert.equal(a:update(fixture.values[i]), b:update(fixture.values[i]))
    end
  end)

  it("refuses a state that is none, and keeps its own", function()
    local a = optim.ReduceOnPlateau(1, options)
    a:update(5)
    for _, state in ipairs { { rate = -1, bad = 0, waits = 0 },
                             { rate = 1, bad = 0.5, waits = 0 },
                             { rate = 1, bad = 0, waits = 0, best = "x" },
                             {} } do
      fails("ReduceOnPlateau: load_state_dict: ", a.load_state_dict, a, state)
    end
    fails("expected what state_dict returns, got nil", a.load_state_dict, a)
    assert.equal(5, a:state_dict().best)
  end)

  it("is told numbers", function()
    local a = optim.ReduceOnPlateau(1)
    fails("ReduceOnPlateau: update: expected a number, got nil", a.update, a)
  end)
end)

describe("optim.scheduler", function()
  local function group(lr)
    return { params = { fnn.Param(fnn.zeros(1)) }, lr = lr }
  end

  it("gives the groups of an optimizer their rates, in proportion", function()
    local opt = optim.SGD({ group(0.1), group(0.01), group(0.05) })
    local apply = optim.scheduler(opt, optim.StepDecay(2, 10))
    assert.equal(2, apply(0))
    assert.near(2, opt:lr(1), 1e-12)
    assert.near(0.2, opt:lr(2), 1e-12)
    assert.near(1, opt:lr(3), 1e-12)
    assert.near(0.2, apply(10), 1e-12)
    assert.near(0.02, opt:lr(2), 1e-12)
    assert.near(2, apply(0), 1e-12)
  end)

  it("takes any function of the step", function()
    local opt = optim.SGD({ group(0) })
    optim.scheduler(opt, function(step) return 1 / (step + 1) end)(3)
    assert.near(0.25, opt:lr(), 1e-12)
    fails("scheduler: the schedule gave nil for step 3, expected a number",
          function() optim.scheduler(opt, function() end)(3) end)
    fails("optim.scheduler: schedule: expected a schedule", optim.scheduler,
          opt, 0.1)
  end)
end)
