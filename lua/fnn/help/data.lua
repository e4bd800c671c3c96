-- data.lua - help on datasets and loaders.
return [[
# Datasets

A dataset is a Dataset, or any table or userdata of your own with __len, fields
(a list of { shape = , dtype = } of one item) and get(self, i, x, y, ...), which
fills the views it is given with item i, counted from 1. The views are good for
that call only.

data.TensorDataset(...: Tensor|table) -> Dataset
  Items along the first dimension of tensors of one length. A field may be
  { tensor, dtype = , scale = }: converted and scaled as it is read.

data.Windows(ids: Tensor, length: integer, options?: table) -> Dataset
  Windows of a sequence of ids (count), u8, i32 or i64, to learn what comes
  next: an item is length ids, and the same moved on by one; both i64.
  step: integer = 1          from one window to the next

data.bytes(s: string) -> Tensor
  The bytes of a string, u8 (n).

data.digits() -> Dataset
  1797 real handwritten digits of 8 by 8 pixels, (1, 8, 8) from 0 to 1, and
  their labels. In the library.

data.from_idx(images: string, labels: string) -> Dataset
  Two IDX files, plain or .gz, as MNIST has them: images (1, h, w) from 0 to 1.

data.mnist(which: string, options?: table) -> Dataset, string[]
  The 60,000 handwritten digits of MNIST for "train", or 10,000 for "test":
  images (1, 28, 28) from 0 to 1, class ids, and the names of the classes. They
  are looked for in root, or in FNN_DATA, in /usr/share/datasets and in the
  user's cache, and else downloaded, into root or the cache. Nothing is
  downloaded when FNN_OFFLINE is set.
  root: string               the folder of the files
  download: boolean = true   whether they may be downloaded
  mirror: string|string[]    addresses to download from

data.fashion_mnist(which: string, options?: table) -> Dataset, string[]
  The same of clothes, for the same models. Debian and Ubuntu have it as
  dataset-fashion-mnist.

data.from_npy(x: string, y: string) -> Dataset
  Two .npy files.

data.from_csv(path: string, targets: integer, options?: table)
    -> Dataset, string[]
  The last targets columns of a table of numbers are targets, the others inputs.
  Also returns the names of the columns. Options as io.read_csv.

data.from_csv_labeled(path: string, options?: table)
    -> Dataset, string[], string[]
  Inputs, and class ids of the last column (or option label). Also returns the
  names of the classes, id 0 first, and of the columns.

data.one_hot_targets(labels: Tensor, n: integer) -> Tensor
  Rows of n zeros with a one at each label.

data.standardize(x: Tensor|Dataset) -> Tensor|Dataset, table
  x, or the first field of a dataset, with each column scaled to mean 0 and
  deviation 1, and what does the same to other data: s:apply(x) to rows, one row
  or a dataset; s:state() is for saving.

data.Standardizer(state: table) -> table
  What standardize returned, from its state().

data.order(n: integer, seed: integer, epoch: integer) -> Tensor
  The ids 0 .. n-1 in the order of an epoch.

Dataset:fields() -> table[]
  The shape and dtype of each field of an item.

Dataset:items(ids: Tensor|integer[]) -> Tensor, Tensor
  The items with these ids as a batch, a tensor a field.

Dataset:all() -> Tensor, Tensor
  All items as one batch.

Dataset:subset(ids: Tensor|integer[]) -> Dataset
  The items with these ids, as a dataset.

Dataset:split(fraction: number|number[], options?: table) -> Dataset, Dataset
  That fraction of the items, and the others, in random order; or a part for
  each of a list of fractions that add up to 1.
  seed: integer = 0    chooses the order

Dataset:split_stratified(fraction: number|number[], options?: table)
    -> Dataset, Dataset
  As split, with each class's share in every part: a class of two items is on
  both sides.
  seed: integer = 0     chooses the items
  field: integer = 2    which field has the classes

data.split(dataset: Dataset, fraction: number|number[], options?: table)
    -> Dataset, Dataset
  As dataset:split.

data.split_stratified(dataset: Dataset, fraction: number|number[],
                      options?: table) -> Dataset, Dataset
  As dataset:split_stratified.

Dataset:batches(n: integer, options?: table) -> function
  Iterates once over the dataset, n items at a time. Options of DataLoader.
  epoch: integer = 0    whose order it is

# Loaders

data.DataLoader(dataset: Dataset|table, options?: table) -> Loader
  Gives batches, each epoch in an order that seed and epoch alone decide.
  `for x, y in loader do` runs through an epoch, the next time through the next.
  batch: integer = 1            items a batch, also batch_size
  shuffle: boolean = false      a new order each epoch
  seed: integer = 0             of the order
  drop_last: boolean = false    leaves out a last batch that is not full
  prefetch: integer             batches read ahead on a thread
  device: string                where batches go; the default device if left out
  pin_memory: boolean = true    with prefetch, batches for a card are read into
                                pinned memory and copied while it computes

Loader:epoch(n?: integer) -> function
  Iterates over the batches of epoch n; without n over what is left of the
  present one, or over the next.

Loader:next() -> Tensor, Tensor
  The next batch, or nothing at the end of the epoch.

Loader:start(epoch: integer, batch?: integer)
  Goes to a batch of an epoch; both count what has been done, so from 0.

Loader:cursor() -> integer, integer
  The epoch, and how many of its batches have been given.

Loader:state_dict() -> table
  The cursor, and what decides which items a batch has: how many there are,
  batch_size, seed, shuffle, drop_last. What was read ahead is not in it.

Loader:load_state_dict(state: table) -> Loader
  Goes to that cursor; raises for a loader whose batches have other items.

Loader:check_state_dict(state: table)
  Raises what load_state_dict would, and changes nothing.
]]
