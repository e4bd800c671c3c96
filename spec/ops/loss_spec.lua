local fixture = require "spec.support.fixture"

describe("loss", function ()
  fixture.define(require "spec.fixtures.loss", it)
end)
