-- classification.lua: tells three kinds of flowers apart by four lengths, from
-- a CSV file.
--
--   fnn examples/classification.lua [--quick] [--csv FILE] [--picture FILE]
--
-- Where there is no such file it is made: 50 flowers of each of three kinds,
-- measured in cm, in the manner of Fisher's irises.  The picture shows the
-- flowers, and how often each kind was taken for which.

local fnn = require "fnn"
local nn, data, plot = fnn.nn, fnn.data, fnn.plot

local o = fnn.cli {
  "Learns the classes of a CSV file: columns of numbers, the class last.",
  { "csv", "flowers.csv", "the file; made if it is not there" },
  { "picture", "classification.png", "where the picture goes", value = "FILE" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}

-- A table of flowers -------------------------------------------------------

-- What a kind measures on average.  A large flower is large in all it has: its
-- size moves all of its lengths, beside what each does by itself.
local kinds = {
  { "meadow", 5.0, 3.4, 1.5, 0.3 },
  { "marsh",  5.9, 2.8, 4.3, 1.3 },
  { "ridge",  6.5, 3.0, 5.5, 2.0 },
}
local spread = { 0.25, 0.20, 0.30, 0.18 }

local function write_flowers (path)
  local rows = { "sepal_length,sepal_width,petal_length,petal_width,kind" }
  for _, kind in ipairs(kinds) do
    local size, own = fnn.randn(50), fnn.randn(50, 4)
    for i = 1, 50 do
      local row = {}
      for k = 1, 4 do
        local length = kind[k + 1] + spread[k] * (size[i] + own[i][k])
        row[k] = ("%.1f"):format(math.max(length, 0.1))
      end
      rows[#rows + 1] = table.concat(row, ",") .. "," .. kind[1]
    end
  end
  fnn.io.write_text(path, table.concat(rows, "\n") .. "\n")
end

if not fnn.io.is_file(o.csv) then write_flowers(o.csv) end

-- Data ---------------------------------------------------------------------

-- Inputs (n, columns) and the id of each row's class, which counts from 0.
local flowers, classes, columns = data.from_csv_labeled(o.csv)
print(("%s: %d rows of %s; classes %s"):format(o.csv, #flowers,
  table.concat(columns, ", "), table.concat(classes, ", ")))

-- A third of each class is kept for testing.  Columns are brought to mean 0
-- and deviation 1 by the numbers of the training rows alone: the test rows are
-- to be as new to the model as next year's flowers.
local train, test = flowers:split_stratified(2 / 3, { seed = 1 })
local scaled, scale = data.standardize(train)
local test_scaled = scale:apply(test)

-- Model and training -------------------------------------------------------

fnn.manual_seed(o.seed)  -- the same start, whether the file was there or not
local model = nn.Sequential(nn.Linear(#columns, 16), nn.ReLU(),
                            nn.Linear(16, #classes))
fnn.fit(model, scaled, {
  epochs = o.quick and 45 or 60, batch_size = 16, seed = 1, lr = 0.005,
  loss = nn.cross_entropy,
  metrics = { accuracy = fnn.metrics.accuracy },
  validation = test_scaled,
  on_epoch = function (epoch, stats)
    if epoch == 1 or epoch % 15 == 0 then
      print(("epoch %2d  loss %.3f  %.0f %% of the test rows"):format(
        epoch, stats.loss, 100 * stats.val_accuracy))
    end
  end,
})

-- What was taken for what --------------------------------------------------

local x, y = test_scaled:all()
local outputs = fnn.no_grad(function () return model(x) end)
local accuracy = fnn.metrics.accuracy(outputs, y)
local counts = fnn.metrics.confusion(outputs, y)

-- counts[actual][taken for] as a table with names.
local function row (name, list)
  print(("%-10s"):format(name) .. (" %8s"):rep(#list):format(
    table.unpack(list)))
end
row("\nactual", classes)
for i, class in ipairs(classes) do row(class, counts[i]:totable()) end
print(("%.1f %% of %d test rows are right"):format(100 * accuracy, #test))

-- The flowers by their petals, the last two columns; a series for each class.
local series = {
  title = "All rows by two of their columns",
  xlabel = columns[#columns - 1], ylabel = columns[#columns],
}
local all, ids = flowers:all()
for id, class in ipairs(classes) do
  local own = all[ids:eq(id - 1)]
  series[id] = { x = own:select(2, -2), y = own:select(2, -1), label = class }
end
plot.grid {
  plot.scatter(series),
  plot.confusion { counts, classes = classes,
                   title = ("%.0f %% of the test rows are right"):format(
                     100 * accuracy) },
  columns = 2,
}:save(o.picture)
print(("wrote %s: the flowers, and what was taken for what"):format(o.picture))

assert(accuracy > 0.9, "the classes have not been learned")
