-- network_spec.lua - dense networks: building, training, files.

local fnn = require "fnn"

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find(text, 1, true), message)
end

local path = os.tmpname()

local function write(text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

local function read()
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local xor_x = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }
local xor_y = { 0, 1, 1, 0 }

local function xor_net(seed)
  return fnn.Network { seed = seed or 1 }:input_size(2):dense(8, "tanh")
    :dense(1, "sigmoid"):loss("bce"):optimizer("adam", { lr = 0.05 })
end

-- Three clouds of points, and their ids.
local function clouds(n, seed)
  local g = { generator = fnn.Generator(seed) }
  local centres = fnn.tensor { { 0, 2 }, { 2, -1 }, { -2, -1 } }
  local ids = fnn.arange(n, { dtype = "i64" }) % 3
  return fnn.normal(0, 0.5, { n, 2 }, g) + centres:index_select(1, ids), ids
end

describe("fnn.Network", function()
  it("learns XOR", function()
    local net = xor_net()
    net:fit(xor_x, xor_y, { epochs = 200 })
    assert.equal(1, net:accuracy(xor_x, xor_y))
    assert.same({ { 2, 0 }, { 0, 2 } },
                net:confusion_matrix(xor_x, xor_y):totable())
    assert.is_true(net:predict { 1, 0 }:item() > 0.9)
  end)

  it("learns a line", function()
    local x = fnn.linspace(-1, 1, 32):reshape(32, 1)
    local net = fnn.Network { seed = 2 }:input_size(1):dense(1)
      :optimizer("sgd", { lr = 0.1 })
    local history = net:fit(x, x * 3 - 1, { epochs = 200, batch_size = 8 })
    assert.is_true(history[200].loss < 1e-6)
    assert.near(-1, net:predict { 0 }:item(), 1e-3)
  end)

  it("learns classes, as ids or rows, of softmax or logits", function()
    local x, ids = clouds(90, 1)
    local test, wanted = clouds(60, 2)
    for _, last in ipairs { "softmax", "linear" } do
      for _, y in ipairs { ids, ids:one_hot(3):to("f32") } do
        local net = fnn.Network { seed = 3 }:input_size(2):dense(8, "relu")
          :dense(3, last):loss("cross_entropy")
          :optimizer("adamw", { lr = 0.05 })
        net:fit(x, y, { epochs = 20 })
        assert.is_true(net:accuracy(test, wanted) > 0.95)
        local m = net:confusion_matrix(test, wanted)
        assert.equal(60, m:sum():item())
        assert.is_true(m[1][1] >= 19)
        if last == "softmax" then
          assert.near(1, net:predict { 0, 2 }:sum():item(), 1e-6)
        end
      end
    end
  end)

  it("trains to the same bits with one seed", function()
    local function run(seed)
      local net = xor_net(seed)
      return { net:fit(xor_x, xor_y, { epochs = 5, batch_size = 2 }),
               net:predict(xor_x):totable() }
    end
    local first = run(1)
    fnn.manual_seed(99)
    assert.same(first, run(1))
    assert.not_same(first, run(2))
  end)

  it("takes the loss of what its outputs are", function()
    local net = xor_net()
    local p = net:forward(xor_x):reshape(-1)
    local y = fnn.tensor(xor_y)
    local bce = -(p:log() * y + (-p + 1):log() * (-y + 1)):mean():item()
    local history = net:fit(xor_x, xor_y, { batch_size = 4, metrics = {
      right = fnn.metrics.accuracy } })
    assert.near(bce, history[1].loss, 1e-6)
    assert.is_true(history[1].right <= 1)
  end)

  it("stops a fit_with that returns false", function()
    local losses = {}
    local history = xor_net():fit_with(xor_x, xor_y, { epochs = 10 },
                                       function(epoch, loss)
      losses[epoch] = loss
      return epoch < 4
    end)
    assert.equal(4, #history)
    for i = 1, 4 do assert.equal(history[i].loss, losses[i]) end
  end)

  it("goes on where a fit ended", function()
    local whole, parts = xor_net(), xor_net()
    whole:fit(xor_x, xor_y, { epochs = 6, shuffle = false })
    parts:fit(xor_x, xor_y, { epochs = 3, shuffle = false })
    parts:fit(xor_x, xor_y, { epochs = 3, shuffle = false })
    assert.same(whole:predict(xor_x):totable(), parts:predict(xor_x):totable())
  end)

  it("predicts or explains, where forward raises", function()
    local net = xor_net()
    for _, bad in ipairs { { 1, 2, 3 }, { { 1 } }, fnn.zeros(2, 3),
                           fnn.zeros(1, 2, 2), { { 1, 2 }, { 3 } }, "x" } do
      local y, message = net:predict(bad)
      assert.is_nil(y)
      assert.matches("^Network: ", message)
      assert.is_false((pcall(net.forward, net, bad)))
    end
    assert.equal("Network: expected inputs (2) or (n, 2), got (3)",
                 select(2, net:predict { 1, 2, 3 }))
    assert.matches("^Network: inputs: tensor: ragged tables",
                   select(2, net:predict { { 1, 2 }, { 3 } }))
    assert.same({ 1 }, net:forward { 1, 2 }:shape())
    assert.same({ 4, 1 }, net:predict(xor_x):shape())
    assert.is_false(net:predict(xor_x):has_graph())
    assert.equal("Network: it has no layers yet",
                 select(2, fnn.Network():predict { 1 }))
  end)

  it("says what is wrong", function()
    local function empty() return fnn.Network():input_size(2) end
    raises("Network: dense: the input_size comes first", function()
      fnn.Network():dense(3)
    end)
    raises("Network: input_size: it is 2 already", function()
      empty():input_size(3)
    end)
    raises("Network: dense: expected an integer of 1 or more, got 0",
           function() empty():dense(0) end)
    raises("got 'relo' (did you mean 'relu'?)",
           function() empty():dense(2, "relo") end)
    raises("Network: loss: expected 'bce', 'cross_entropy', 'mse', got 'mae'",
           function() empty():loss("mae") end)
    raises("Network: optimizer: expected 'adam', 'adamw', 'sgd', got 'ada'",
           function() empty():optimizer("ada") end)
    raises("Network: loss 'bce' goes with the last activation 'sigmoid', " ..
           "got 'relu'", function()
      empty():dense(1, "relu"):loss("bce"):fit(xor_x, xor_y)
    end)
    raises("Network: expected targets (n, 1) of 4 rows, got (3, 1)",
           function() xor_net():fit(xor_x, { 1, 2, 3 }) end)
    raises("Network: targets: expected a tensor or a table of numbers, got " ..
           "nil", function() xor_net():fit(xor_x) end)
    raises("Network: targets: an id of a class is a whole number", function()
      empty():dense(2, "softmax"):loss("cross_entropy")
        :fit(xor_x, { 0, 1, 1.5, 0 })
    end)
    raises("unknown option 'sede' (did you mean 'seed'?)", fnn.Network,
           { sede = 1 })
  end)

  it("is printed in a line", function()
    assert.equal("Network 2 > 8 tanh > 1 sigmoid, loss bce, optimizer adam",
                 tostring(xor_net()))
  end)
end)

describe("a network's file", function()
  teardown(function() os.remove(path) end)

  it("gives the same predictions", function()
    local net = xor_net()
    net:fit(xor_x, xor_y, { epochs = 5 })
    assert.equal(net, net:save_json(path))
    local again = fnn.Network():load_json(path)
    assert.same(net:predict(xor_x):totable(), again:predict(xor_x):totable())
    assert.equal(tostring(net), tostring(again))
    assert.is_nil(read():find "lr")
    -- And learns on, with a new optimizer.
    again:fit(xor_x, xor_y, { epochs = 1 })
  end)

  it("is refused when it is no such file", function()
    local net = xor_net()
    net:save_json(path)
    local good = read()
    local function refused(text, from, to)
      local bad, n = good:gsub(from, to, 1)
      assert.equal(1, n, from)
      write(bad)
      raises(path .. ": " .. text, function() fnn.Network():load_json(path) end)
    end
    refused("json: byte 9: expected the end, got ':'", "^{", "")
    refused("json: byte", "}%s*$", "")
    refused("not a network of fnn (expected format 'fnn.network', got 'x')",
            '"fnn.network"', '"x"')
    refused("version 2 of the format (expected 1)", '"version":1',
            '"version":2')
    refused("input_size: expected an integer of 1 or more, got -2",
            '"input_size":2', '"input_size":-2')
    refused("layer 1: weight: row 1: expected 5 numbers, got 2",
            '"input_size":2', '"input_size":5')
    refused("layer 1: weight: expected 1000000000 rows, got 8", '"size":8',
            '"size":1000000000')
    refused("layer 2: no activation 'sine'", '"sigmoid"', '"sine"')
    refused("no loss 'nil'", '"loss":"bce"', '"lost":"bce"')
    refused("layer 1: bias: element 1: expected a finite number, got inf",
            '"bias":%[[^,]*', '"bias":[1e999')
    refused("layer 1: bias: expected 8 numbers, got 7", '"bias":%[[^,]*,',
            '"bias":[')
    refused("layers: expected a list of them, got a table",
            '"layers":%b[]', '"layers":[]')
    for _, text in ipairs { "", "null", "[]", "3", '"x"', ("["):rep(1e5),
                            '{"format":"fnn.network","version":1}' } do
      write(text)
      raises(path .. ": ", function() fnn.Network():load_json(path) end)
    end
  end)

  it("is cut anywhere, and then refused", function()
    xor_net():save_json(path)
    local good = read()
    for n = 0, #good - 3, 7 do
      write(good:sub(1, n))
      assert.is_false((pcall(function() fnn.Network():load_json(path) end)))
    end
  end)

  it("fills a network without layers, from a file that is there", function()
    raises("Network: load_json: this one has layers already",
           function() xor_net():load_json(path) end)
    raises("/nowhere/net.json: ",
           function() fnn.Network():load_json("/nowhere/net.json") end)
    local net = xor_net()
    fnn.no_grad(function() net.model[1].bias:value():fill_(0 / 0) end)
    write "before"
    raises("json: no number for", function() net:save_json(path) end)
    assert.equal("before", read())
  end)
end)

describe("io.read_text", function()
  it("reads what write_text wrote", function()
    local text = "a\0b\r\n" .. ("x"):rep(1e5)
    fnn.io.write_text(path, text)
    assert.equal(text, fnn.io.read_text(path))
    fnn.io.write_text(path, "")
    assert.equal("", fnn.io.read_text(path))
    os.remove(path)
    raises(path .. ": ", fnn.io.read_text, path)
    raises("/nowhere/x: ", fnn.io.write_text, "/nowhere/x", "y")
  end)
end)
