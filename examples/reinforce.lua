-- reinforce.lua: learns from rewards alone, by the policy gradient (REINFORCE,
-- Williams 1992): which of five slot machines pays best, and the way through a
-- maze with deep water in it.
--
--   fnn examples/reinforce.lua [--quick] [--device cuda]
--
-- It prints how often each machine is chosen, and the maze as text: an arrow in
-- each field for what is done there, and the way from the start to the goal.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local options = fnn.cli {
  "Learns from rewards: which slot machine is best, the way through a maze.",
  { "quick", false, "for tests; all of it takes but a second" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
math.randomseed(options.seed)

-- Nobody tells what would have been right: there are only actions that were
-- tried and what they earned.  A policy gives a logit for each action.  An
-- action that earned more than was expected is made more probable, one that
-- earned less, less: by the gradient of log p(action) times the advantage.

-- An action, as an id, by the probabilities in a list.
local function pick(chances)
  local u = math.random()
  for i, p in ipairs(chances) do
    u = u - p
    if u < 0 then return i - 1 end
  end
  return #chances - 1
end

-- cross_entropy is -log p(action), one for each row of logits.  Entropy counts
-- too, or the first thing that works would be all that is tried.
local function policy_loss(logits, actions, advantages)
  local surprise = nn.cross_entropy(logits, actions, { reduction = "none" })
  local logp = logits:log_softmax(-1)
  local entropy = -(logp:exp() * logp):sum(-1)
  return (surprise * advantages - 0.01 * entropy):mean()
end

-- Slot machines --------------------------------------------------------------

local pays = { 0.1, 0.5, 0.9, 1.4, 0.3 }  -- in the mean; a pull varies by 1
local policy = fnn.Param(fnn.zeros(5))    -- all are as good, for all one knows
local opt = optim.Adam({ policy }, { lr = 0.05 })

for _ = 1, 300 do
  local chances, arms = policy:softmax(-1):totable(), {}
  for i = 1, 32 do arms[i] = pick(chances) end
  local rewards = fnn.tensor(pays):index_select(1, arms) + fnn.randn(32)
  opt:zero_grad()
  policy_loss(policy:expand(32, 5), arms, rewards - rewards:mean()):backward()
  opt:step()
end

local chances = policy:softmax(-1):totable()
print "machine  pays  is chosen"
for i, p in ipairs(chances) do
  print(("%7d  %4.1f  %5.1f %%  %s"):format(i, pays[i], 100 * p,
                                          ("#"):rep(math.floor(40 * p))))
end
assert(chances[4] > 0.9, "the best machine has not been found")

-- A maze -------------------------------------------------------------------

local maze = {  -- from S to G; # is a wall, in ~ a walk ends
  "S . . # . . . .",
  "# # . # . # # .",
  ". . . . . # G .",
  ". # # ~ # # # .",
  ". . . ~ . . . .",
}
local columns, fields, free = 8, {}, {}
for c in table.concat(maze):gmatch "[^ ]" do
  if c == "S" or c == "." then free[#free + 1] = #fields end
  fields[#fields + 1] = c
end
local moves = { { -1, 0, "^" }, { 1, 0, "v" }, { 0, -1, "<" }, { 0, 1, ">" } }

-- One move: the field that it leads to, the reward, whether it was the last.
local function go(field, action)
  local down, right = table.unpack(moves[action + 1])
  local row, column = field // columns + down, field % columns + right
  local there = row * columns + column
  local what = column >= 0 and column < columns and fields[there + 1] or "#"
  local ends = what == "G" and 1 or what == "~" and -1
  if what == "#" then return field, -0.05, false end
  return there, ends or -0.01, ends ~= false
end

-- The policy: a vector for each field, and from it a logit for each move.
local model = nn.Sequential(nn.Embedding(#fields, 32), nn.Linear(32, 4))
opt = optim.Adam(model:parameters(), { lr = 0.02 })
local everywhere = fnn.arange(#fields, { dtype = "i64" })
local usual = {}  -- what was earned from a field on: the running mean

for _ = 1, 500 do
  local logits, at, actions, advantages = model(everywhere), {}, {}, {}
  local chance = logits:softmax(-1):totable()
  for _ = 1, 32 do  -- walks, each from anywhere
    local field, first, rewards, last = free[math.random(#free)], #at, {}, false
    while not last and #rewards < 40 do
      local n = #at + 1
      at[n], actions[n] = field, pick(chance[field + 1])
      field, rewards[#rewards + 1], last = go(field, actions[n])
    end
    local earned = 0  -- from there to the end; what is far off counts less
    for n = #at, first + 1, -1 do
      earned = rewards[n - first] + 0.95 * earned
      advantages[n] = earned - (usual[at[n]] or 0)
      usual[at[n]] = (usual[at[n]] or 0) + 0.05 * advantages[n]
    end
  end
  opt:zero_grad()
  policy_loss(logits:index_select(1, at), actions,
              fnn.tensor(advantages)):backward()
  opt:step()
end

local best = model(everywhere):argmax(-1)  -- what is likeliest in each field
local arrows, field, steps = table.move(fields, 1, #fields, 1, {}), 0, 0
for _, i in ipairs(free) do arrows[i + 1] = moves[best[i + 1] + 1][3] end
while fields[field + 1] ~= "G" and steps < 40 do
  field, steps = go(field, best[field + 1]), steps + 1
  if fields[field + 1] == "." then fields[field + 1] = "*" end
end
print(("\nwhat is done in each field; the way, of %d steps"):format(steps))
for i = 1, #fields, columns do
  print(table.concat(arrows, " ", i, i + columns - 1), "",
        table.concat(fields, " ", i, i + columns - 1))
end
assert(steps == 14, "not the shortest way")
