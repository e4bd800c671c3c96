-- text.lua - help on generating sequences of ids.
return [[
# Generating

A model that is generated from is any function of ids: model(ids) of an i64
tensor (rows, length) gives logits (rows, length, vocabulary), of which the last
place is looked at. With option cache it is called as model(ids, { cache = cache
}), and gets only the ids that are not in the cache yet. It runs without a graph
and in eval mode, a call at a time. docs/sequences.md has a program.

text.Sampler(options?: table) -> Sampler
  How ids are chosen: sampler(logits, ids) is an id for logits (vocabulary) of
  any float dtype and device, or for logits (rows, vocabulary) an i64 tensor of
  one for each row. ids, which may be left out, are those so far, a list or a
  tensor, or one of these for each row; they are looked at where there is a
  penalty. -inf bans an id; NaN, inf, and nothing but -inf raise. The options
  are applied in the order below. Nothing is sorted: the time is linear in the
  vocabulary. Of equal logits the one of the lowest id is the larger.
  callback: function                first, of logits and ids: the logits are the
                                    call's own, on the host, to edit, or others
                                    are returned
  repetition_penalty: number = 1    1 or more: divides a positive logit of an id
                                    in ids, multiplies a negative one, once
  frequency_penalty: number = 0     taken off for each time an id is in ids
  presence_penalty: number = 0      taken off once for an id in ids
  temperature: number = 1           divides logits; 0 chooses the largest
  top_k: integer                    so many of the largest stay
  top_p: number = 1                 the fewest of the largest stay, one or more,
                                    that have this share of the probability
                                    that top_k left
  min_p: number = 0                 what has this share of the largest
                                    probability stays
  seed: integer                     of a generator of its own, or
  generator: Generator              where its numbers come from: one a choice,
                                    none where the largest is chosen

Sampler:options() -> table
  The options that differ from the defaults, but for seed and generator.

text.generate(model: Module|function, prompt: table|Tensor, options?: table)
              -> integer[]
  The new ids behind a prompt: a list of ids or a tensor (length). For a batch,
  a list of prompts of one length or a tensor (rows, length), a list for each.
  max_tokens: integer = 100    as many at most
  sampler: Sampler|function    of logits (vocabulary) and the list of all ids;
                               the largest logit if not given
  cache: any                   what has clear(), truncate(n) and, by #, the
                               number of ids it holds: it is cleared, the prompt
                               is read once, then an id a step; without one all
                               is read for each id
  callback: function           called with each id (and the place of its
                               prompt); ends it by returning false, that id
                               included. It may yield
  stop_ids: integer[]          end it, and are left out
  stop: table                  a list of sequences of ids, which do so too; ids
                               that may begin one are held back until that is
                               known

text.stream(model: Module|function, prompt: table|Tensor, options?: table)
            -> function
  An iterator over the same ids, each made when it is asked for:
  for id in text.stream(model, prompt) do ... end

text.Decoder(model: Module|function, options?: table) -> Decoder
  A model that is fed and asked in turns. #decoder is the number of its ids.
  cache: any                   as generate's: a turn then reads what is new
  sampler: Sampler|function    the largest logit if not given

Decoder:feed(ids: integer|integer[]|Tensor) -> Decoder
  Adds ids, to be read by the next next.

Decoder:next(sampler?: Sampler|function) -> integer
  Reads what has not been read and chooses the next id, which is added. An error
  of the model leaves ids and cache as they were.

Decoder:ids() -> integer[]
  All ids so far, fed and chosen.

Decoder:reset() -> Decoder
  Forgets them, and clears the cache.

text.BeamSearch(options?: table) -> function
  search(step, prompt) is the list of ids behind the prompt that is found to be
  the most probable, and its score: the logarithm of its probability over
  max(1, length) ^ length_penalty. step is a function of a list of ids, prompt
  included, that gives logits (vocabulary), a tensor or a list of numbers; -inf
  is what may not follow.
  width: integer = 4             sequences that are kept; 1 is greedy
  length_penalty: number = 1     the exponent; a larger one favours long ones
  eos: integer                   the id that ends a sequence; it counts in its
                                 probability, and is in neither the result nor
                                 the length
  max_tokens: integer = 100      as many at most
  batched: boolean = false       step gets all live sequences, an i64 tensor
                                 (n, length), and gives logits (n, vocabulary)
]]
