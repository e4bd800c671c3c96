-- parity_spec.lua - every op, module, loss and optimizer on a card beside
-- PyTorch: the cases of spec/fixtures/parity, made and run there.

local fnn = require "fnn"
local device = require "spec.support.device"
local parity = require "spec.support.parity"

if not device.there() then return end

describe("on cuda,", function ()
  local before
  setup(function ()
    before = fnn.default_device()
    fnn.set_default_device(device.name)
  end)
  teardown(function () fnn.set_default_device(before) end)

  it("tensors and modules are made there", function ()
    assert.equal("cuda:0", fnn.zeros(1):device())
    assert.equal("cuda:0", fnn.nn.Linear(2, 2).weight:device())
  end)

  parity.specs("parity", describe, it, assert)
end)
