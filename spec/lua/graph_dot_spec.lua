-- graph_dot_spec.lua - fnn.graph.dot: text that Graphviz reads.

local fnn = require "fnn"
local nn = fnn.nn

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

-- A reader of the part of Graphviz' language that is written: statements
-- `id [a=b, c="d"];` `id -> id [..];` `a=b;` `node [..];` between the braces.
-- Gives nodes[id] = attributes, edges = { { from, to, attributes } }.
local function parse(text)
  local at = 1
  local function skip() at = text:find("%S", at) or #text + 1 end
  local function token()
    skip()
    local s = text:match('^"', at)
    if s then
      local out = {}
      at = at + 1
      while true do
        local c = text:sub(at, at)
        assert(c ~= "", "a string without end")
        if c == '"' then break end
        if c == "\\" then
          at = at + 1
          c = text:sub(at, at)
          if c == "n" then c = "\n" end
        end
        out[#out + 1] = c
        at = at + 1
      end
      at = at + 1
      return table.concat(out), "string"
    end
    s = text:match("^%->", at) or text:match("^[%a_][%w_]*", at) or
        text:match("^%d+", at) or text:match("^[%[%]{};=,]", at)
    assert(s, "at '" .. text:sub(at, at + 20) .. "'")
    at = at + #s
    return s, "word"
  end
  local function peek()
    local was = at
    local s = token()
    at = was
    return s
  end
  local function want(s) assert.equal(s, (token())) end
  local function attributes()
    local a = {}
    if peek() ~= "[" then return a end
    want "["
    repeat
      local key = token()
      want "="
      a[key] = token()
      local sep = token()
      assert(sep == "," or sep == "]", sep)
    until sep == "]"
    return a
  end
  want "digraph"
  token()
  want "{"
  local nodes, edges = {}, {}
  while peek() ~= "}" do
    local id = token()
    if peek() == "->" then
      want "->"
      local to = token()
      edges[#edges + 1] = { id, to, attributes() }
    elseif peek() == "=" then
      want "="
      token()
    else
      assert(id == "node" or not nodes[id], id .. " twice")
      nodes[id] = attributes()
    end
    want ";"
  end
  want "}"
  skip()
  assert.equal(#text + 1, at)
  nodes.node = nil
  for _, e in ipairs(edges) do
    assert(nodes[e[1]] and nodes[e[2]], "an edge of nothing")
  end
  return nodes, edges
end

local function labels(nodes)
  local list = {}
  for _, a in pairs(nodes) do list[#list + 1] = a.label end
  table.sort(list)
  return list
end

describe("fnn.graph.dot", function()
  it("has ops with shapes and what they keep, and parameters by path",
     function()
    local model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    local loss = model(fnn.randn(32, 8)):square():mean()
    local nodes, edges = parse(fnn.graph.dot(loss, { names = model }))
    assert.same({
      "0.bias\n(16) f32", "0.weight\n(16, 8) f32", "2.bias\n(4) f32",
      "2.weight\n(4, 16) f32",
      "linear\n(32, 16) f32\nsaved 1.0 KB",  -- x
      "linear\n(32, 4) f32\nsaved 2.3 KB",   -- x and the weight
      "mean\n() f32", "result\n() f32", "square\n(32, 4) f32\nsaved 512 bytes",
      "tanh\n(32, 16) f32\nsaved 2.0 KB" }, labels(nodes))
    -- 2 and 3 into the layers, one each into tanh, square, mean, the result
    assert.equal(9, #edges)
    local from = {}
    for _, e in ipairs(edges) do
      from[#from + 1] = nodes[e[1]].label:match "[^\n]+" .. ">" ..
                        nodes[e[2]].label:match "[^\n]+" .. (e[3].label or "")
    end
    table.sort(from)
    assert.same({ "0.bias>linear3", "0.weight>linear2", "2.bias>linear3",
                  "2.weight>linear2", "linear>square", "linear>tanh",
                  "mean>result", "square>mean", "tanh>linear1" }, from)
  end)

  it("shows each node once, however many paths lead there", function()
    local p = fnn.Param(fnn.ones(2))
    local x = p * 2
    for _ = 1, 20 do x = x + x end
    local nodes, edges = parse(fnn.graph.dot(x))
    local count = 0
    for _ in pairs(nodes) do count = count + 1 end
    assert.equal(1 + 1 + 20 + 1, count)
    assert.equal(1 + 2 * 20 + 1, #edges)
  end)

  it("takes plain data, a Param, a graph that is spent, odd names", function()
    local nodes, edges = parse(fnn.graph.dot(fnn.ones(2)))
    assert.same({ "result\n(2) f32" }, labels(nodes))
    assert.equal(0, #edges)
    local p = fnn.Param(fnn.ones(2))
    nodes, edges = parse(fnn.graph.dot(p:value()))
    assert.same({ "parameter\n(2) f32", "result\n(2) f32" }, labels(nodes))
    assert.equal(1, #edges)
    local loss = p:exp():sum()
    loss:backward()
    nodes = parse(fnn.graph.dot(loss))
    assert.same({ "result\n() f32", "sum\n() f32\nspent" }, labels(nodes))
    local Odd = nn.module "Odd"
    function Odd:init() self['say "x\\n"'] = p end
    nodes = parse(fnn.graph.dot(p * 2, { names = Odd(), direction = "LR" }))
    assert.is_truthy(table.concat(labels(nodes)):find('say "x\\n"', 1, true))
  end)

  it("is quick for a long chain", function()
    local x = fnn.Param(fnn.ones(1)) * 1
    for _ = 1, 5000 do x = x + 1 end
    assert.is_true(#fnn.graph.dot(x) > 5000)
  end)

  it("refuses what it cannot draw", function()
    fails("expected a tensor, got a table", fnn.graph.dot, {})
    fails("expected BT, TB, LR or RL", fnn.graph.dot, fnn.ones(1),
          { direction = "up" })
    fails("did you mean 'names'", fnn.graph.dot, fnn.ones(1), { name = 1 })
    fails("expected a module", fnn.graph.dot, fnn.ones(1), { names = {} })
  end)
end)
