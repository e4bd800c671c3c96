-- dense_networks.lua - three small tasks with fnn.Network: XOR, a curve, and
-- handwritten digits.
--
--   fnn examples/dense_networks.lua [--quick] [--device cuda]
--
-- The same seed gives the same numbers each time.

local fnn = require "fnn"

local quick = fnn.cli {
  "Three small tasks with fnn.Network: XOR, a curve, digits.",
  { "quick", false, "a few seconds, for tests" },
}.quick

-- XOR: four points, one output, which is a probability.
local x = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }
local y = { 0, 1, 1, 0 }
local xor = fnn.Network { seed = 1 }:input_size(2):dense(8, "tanh")
  :dense(1, "sigmoid"):loss("bce"):optimizer("adam", { lr = 0.05 })
xor:fit(x, y, { epochs = 300 })
print(xor)
for _, point in ipairs(x) do
  print(("  %d xor %d  %.3f"):format(point[1], point[2],
                                     xor:predict(point):item()))
end
assert(xor:accuracy(x, y) == 1, "XOR has not been learned")

-- Regression: y = sin(3 x) from 64 points; the training ends by itself.
local points = fnn.linspace(-1, 1, 64):reshape(64, 1)
local curve = fnn.Network { seed = 2 }:input_size(1):dense(32, "tanh")
  :dense(1, "linear"):loss("mse"):optimizer("adam", { lr = 0.01 })
local history = curve:fit_with(points, (points * 3):sin(),
                               { epochs = 500, batch_size = 16 },
                               function (_, loss) return loss > 1e-4 end)
print(curve)
print(("  loss %.1e after %d epochs"):format(history[#history].loss, #history))
assert(history[#history].loss < 1e-3, "the curve has not been learned")

-- Classification: the 1797 digits that are in the library.
local train, test = fnn.data.digits():split_stratified(0.8)
local images, labels = train:all()
local test_images, test_labels = test:all()
images, test_images = images:flatten(2), test_images:flatten(2)
local digits = fnn.Network { seed = 3 }:input_size(64):dense(64, "relu")
  :dense(10, "softmax"):loss("cross_entropy")
  :optimizer("adamw", { lr = 3e-3 })
digits:fit(images, labels, { epochs = quick and 8 or 20 })
print(digits)
local accuracy = digits:accuracy(test_images, test_labels)
print(("  %.1f %% of %d test digits"):format(100 * accuracy, #test))
print(digits:confusion_matrix(test_images, test_labels))
assert(accuracy > 0.93, "the digits have not been learned")

-- A file keeps layers and weights.
local path = os.tmpname()
digits:save_json(path)
local again = fnn.Network():load_json(path)
os.remove(path)
assert(again:predict(test_images):eq(digits:predict(test_images)):all():item(),
       "the network in the file differs")
print "  the network in the file gives the same outputs"
