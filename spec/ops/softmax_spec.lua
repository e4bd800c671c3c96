local fixture = require "spec.support.fixture"

describe("softmax", function ()
  fixture.define(require "spec.fixtures.softmax", it)
end)
