-- vae.lua: a variational autoencoder (Kingma and Welling 2014) puts handwritten
-- digits onto a plane, where like ones come to lie together.
--
--   fnn examples/vae.lua [--quick] [--picture FILE] [--device cuda]
--
-- The picture has on top test digits and below each what is left of it when all
-- that is known is its place on the plane; then the plane itself: what is drawn
-- at each of its places, and where the test digits lie.

local fnn = require "fnn"
local nn, optim, data, plot = fnn.nn, fnn.optim, fnn.data, fnn.plot

local options = fnn.cli {
  "Puts digits onto a plane where like ones lie together.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
  { "picture", "vae.png", "where to draw", value = "FILE" },
}
local epochs = options.quick and 20 or 120

local train, test = data.digits():split_stratified(0.8)

-- The encoder says where on the plane a digit is: a mean and how sure that is,
-- the logarithm of a variance.  The decoder draws what is at a place: logits
-- of how bright the 64 pixels are.
local Vae = nn.module "Vae"

function Vae:init(hidden, places)
  self.encoder = nn.Sequential(
    nn.Flatten(), nn.Linear(64, hidden), nn.GELU(),
    nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 2 * places))
  self.decoder = nn.Sequential(
    nn.Linear(places, hidden), nn.GELU(),
    nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 64))
end

function Vae:forward(x)
  local mean, log_var = table.unpack(self.encoder(x):chunk(2, 2))
  -- A place near there.  The noise comes from outside, so that gradients reach
  -- the mean and the variance.
  local place = mean + (log_var / 2):exp() * fnn.randn(mean:shape())
  return self.decoder(place), mean, log_var
end

-- The loss is -ELBO, in nats a digit: what it costs to tell the pixels to one
-- who knows the place, and to tell the place to one who only knows that all
-- together lie as a normal law.
local function losses(x, logits, mean, log_var)
  local pixels = nn.bce_with_logits(logits, x:flatten(2), { reduction = "sum" })
  local place = (mean * mean + log_var:exp() - log_var - 1):sum() / 2
  return pixels / #x, place / #x
end

local vae = Vae(256, 2)
local opt = optim.AdamW(vae:parameters(), { lr = 2e-3, weight_decay = 0.01 })
local images, ids = test:all()

-- What a test digit costs one who only knows how bright each pixel is in the
-- mean: what a model has to be better than.
local mean = train:all():mean(1):clamp(1e-4, 1 - 1e-4):expand(images:shape())
local without = nn.bce(mean, images, { reduction = "sum" }):item() / #images
print(("the mean digit alone: %.2f nats a test digit"):format(without))

local elbo
for epoch = 1, epochs do
  for x in train:batches(64, { shuffle = true, epoch = epoch }) do
    opt:zero_grad()
    -- At first the place may cost nothing, or all digits stay at one.
    local pixels, place = losses(x, vae(x))
    local loss = pixels + place * math.min(1, epoch / 10)
    loss:backward()
    opt:step()
  end
  if epoch % (epochs // 10) == 0 then
    fnn.no_grad(function ()
      local pixels, place = losses(images, vae(images))
      elbo = -(pixels + place):item()
      print(("epoch %3d: ELBO of a test digit %.2f (pixels %.2f, place %.2f)")
        :format(epoch, elbo, -pixels:item(), -place:item()))
    end)
  end
end

-- The picture ----------------------------------------------------------------

local function pictures()
  local places = vae.encoder(images):narrow(2, 1, 2)

  -- Test digits, and what is drawn at their places.
  local drawn = vae.decoder(places:narrow(1, 1, 12)):sigmoid()
  local shown = fnn.cat { images:narrow(1, 1, 12), drawn:view(-1, 1, 8, 8) }
  shown = shown:interpolate { scale_factor = 8, mode = "bilinear" }

  -- What is drawn all over the plane, from -2 to 2 in both directions.
  local right = fnn.linspace(-2, 2, 12):expand(12, 12)
  local all = fnn.stack({ right, right:t():flip(1) }, 3):view(-1, 2)
  local plane = vae.decoder(all):sigmoid():view(-1, 1, 8, 8)
                   :interpolate { scale_factor = 6, mode = "bilinear" }

  -- Where the test digits lie.
  local points = { title = "where the test digits lie", width = 700,
                   height = 700 }
  for id = 0, 9 do
    local own = places:index_select(1, ids:eq(id):nonzero():flatten())
    points[id + 1] = { x = own:select(2, 1), y = own:select(2, 2),
                       label = tostring(id), size = 5 }
  end
  return plot.grid {
    plot.images { shown, columns = 12, title = "test digits, and what is " ..
                                               "left of them" },
    plot.grid {
      plot.images { plane, columns = 12, scale = 1,
                    title = "what is drawn at each place" },
      plot.scatter(points), columns = 2,
    }, columns = 1,
  }
end

fnn.no_grad(pictures):save(options.picture)
print(options.picture .. " shows test digits, what is left of them, the plane")
assert(-elbo < without - 1, "the places on the plane tell too little")
