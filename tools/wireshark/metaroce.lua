-- Wireshark dissector for MetaRoCE as specified in docs/spec.md (wire version 1, a layout independent of Meta's).
--
-- What is in a datagram is shown by the tables in "Layouts"; what is wrong with it is found by "Checks", in the order in which an endpoint
-- checks it, so that the first `metaroce.error` is the reason under which an endpoint counts the datagram. "Conversations" remembers what
-- other packets of the capture say: which two connection ids belong together, what was sent before, what an acknowledgment answers.
--
-- Only numbers up to 32 bits and strings of bytes are computed with, so that it runs with Lua 5.1 to 5.4.

local metaroce = Proto("metaroce", "MetaRoCE (independent wire format)")

local VERSION = 1
-- ACK and BLOCK: the first and a further block of an acknowledgment without its vector.
local HEADER, ACK, BLOCK, DATA, INIT = 16, 32, 28, 48, 288
local MOST = 4294967295

-- Names ---------------------------------------------------------------------------------------------------------------------------

local INIT_KIND, RETRY, ACCEPT, REJECT, DATA_KIND, ACK_KIND, PROBE, FENCE, FENCE_ACK, ANNOUNCE, HINT, CLOSE, CLOSE_ACK =
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local KINDS = {
  [0] = "INIT", "RETRY", "ACCEPT", "REJECT", "DATA", "ACK", "PROBE", "FENCE", "FENCE_ACK", "ANNOUNCE", "HINT", "CLOSE", "CLOSE_ACK",
}
-- Without the trailer; kinds of one length only.
local LENGTHS = {
  [INIT_KIND] = INIT, [RETRY] = 36, [REJECT] = 20, [PROBE] = 16, [FENCE] = 16, [ANNOUNCE] = 18, [HINT] = 20,
  [CLOSE] = 24, [CLOSE_ACK] = 20,
}
-- Bits that may be set, by kind.
local ALLOWED = { [DATA_KIND] = 7, [ACK_KIND] = 0x78, [FENCE_ACK] = 0x78 }

local WRITE, WRITE_IMM, SEND, SEND_IMM, READ_REQUEST, READ_RESPONSE, ATOMIC_REQUEST, ATOMIC_RESPONSE, ERROR, NOP =
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local OPCODES = {
  [0] = "WRITE", "WRITE_IMM", "SEND", "SEND_IMM", "READ_REQUEST", "READ_RESPONSE", "ATOMIC_REQUEST", "ATOMIC_RESPONSE", "ERROR", "NOP",
}
local REJECT_REASONS = {
  "no common version", "nobody listens", "no room for another connection", "the parameters cannot be met",
  "the cookie is wrong or too old", "the addresses are not acceptable",
}
local ERROR_CODES = {
  "RECEIVER_NOT_READY", "INVALID_KEY", "OUT_OF_BOUNDS", "ACCESS_DENIED", "LENGTH_EXCEEDS_BUFFER", "INVALID_REQUEST", "STREAM_ERROR",
  "MEMORY_FAULT", "RESOURCE_EXHAUSTED",
}
local CLOSE_MODES = { [0] = "drain", "abort" }
local ATOMICS = { [0] = "fetch-add", "compare-swap" }
local CRC_STATUS = { [0] = "Bad", "Good", "Unverified", "Not present" }

-- Fields --------------------------------------------------------------------------------------------------------------------------

local f, registered = {}, {}

local function field(name, make, ...)
  local made = make("metaroce." .. name, ...)
  f[name] = made
  registered[#registered + 1] = made
end

field("version", ProtoField.uint8, "Version", base.DEC, nil, 0xf0)
field("kind", ProtoField.uint8, "Kind", base.DEC, KINDS, 0x0f)
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("flags.ack_request", ProtoField.bool, "ACK_REQUEST: acknowledge at once", 8, nil, 0x01)
field("flags.retransmission", ProtoField.bool, "RETRANSMISSION: was sent before", 8, nil, 0x02)
field("flags.solicited", ProtoField.bool, "SOLICITED: the completion wakes a waiter", 8, nil, 0x04)
field("flags.redirect", ProtoField.bool, "REDIRECT: over other reverse entropy", 8, nil, 0x08)
field("flags.sack_words", ProtoField.uint8, "Numbers of the first block's vector", base.DEC, nil, 0x70)
field("flags.unassigned", ProtoField.uint8, "Without meaning", base.HEX, nil, 0x80)
field("path", ProtoField.uint8, "Path")
field("generation", ProtoField.uint8, "Generation")
field("connection", ProtoField.uint32, "Connection of the receiver", base.HEX)
field("psn", ProtoField.uint32, "PSN")
field("tsn", ProtoField.uint32, "TSN")
field("attempt", ProtoField.uint32, "Attempt")
field("number", ProtoField.uint32, "Number")
field("reserved", ProtoField.bytes, "Zero")
field("source_connection", ProtoField.uint32, "Connection of the sender", base.HEX)
field("hint_mbps", ProtoField.uint32, "Rate hint (Mbit/s; 0 = none)")

field("versions.lowest", ProtoField.uint8, "Lowest version spoken")
field("versions.highest", ProtoField.uint8, "Highest version spoken")
field("versions.chosen", ProtoField.uint8, "Version chosen")
field("cookie.length", ProtoField.uint8, "Length of the cookie")
field("cookie.issued_ms", ProtoField.uint32, "Cookie: issued (listener's ms)")
field("cookie.tag", ProtoField.bytes, "Cookie: tag")
field("parameters", ProtoField.none, "Parameters")
field("parameters.paths", ProtoField.uint8, "Paths each way")
field("parameters.planes", ProtoField.uint8, "Planes")
field("parameters.window", ProtoField.uint16, "Window of a path (PSNs)")
field("parameters.streams", ProtoField.uint16, "Streams")
field("parameters.open_messages", ProtoField.uint16, "Open messages")
field("parameters.open_responses", ProtoField.uint16, "Open responses")
field("parameters.capabilities", ProtoField.uint32, "Capabilities", base.HEX)
field("parameters.capabilities.no_checksum", ProtoField.bool, "NO_CHECKSUM: willing to leave the trailer out", 32, nil, 0x01)
field("parameters.ingress_mbps", ProtoField.uint32, "Ingress capacity of a plane (Mbit/s)")
field("parameters.service", ProtoField.uint32, "Service", base.HEX)
field("plane", ProtoField.none, "Plane")
field("plane.address", ProtoField.ipv6, "Address")
field("plane.ipv4", ProtoField.ipv4, "Address (mapped IPv4)")
field("plane.port", ProtoField.uint16, "UDP port")
field("plane.max_payload", ProtoField.uint16, "Most payload bytes")
field("reject.reason", ProtoField.uint16, "Reason", base.DEC, REJECT_REASONS)
field("reject.detail", ProtoField.uint16, "Detail")

field("opcode", ProtoField.uint8, "Opcode", base.DEC, OPCODES)
field("demand", ProtoField.uint8, "Demand (code)")
field("demand.bytes", ProtoField.uint64, "Demand (bytes)")
field("stream", ProtoField.uint16, "Stream")
field("msn", ProtoField.uint32, "MSN")
field("length", ProtoField.uint32, "Length of the message")
field("offset", ProtoField.uint32, "Offset in the message")
field("address", ProtoField.uint64, "Remote address", base.HEX)
field("rsn", ProtoField.uint32, "RSN")
field("key", ProtoField.uint32, "Key", base.HEX)
field("token", ProtoField.uint32, "Token", base.HEX)
field("immediate", ProtoField.uint32, "Immediate", base.HEX)
field("payload", ProtoField.bytes, "Payload")
field("payload.length", ProtoField.uint32, "Payload length")
field("atomic.operation", ProtoField.uint64, "Operation")
field("atomic.operand", ProtoField.uint64, "Addend, or value to compare with", base.HEX)
field("atomic.swap", ProtoField.uint64, "Value to swap in", base.HEX)
field("atomic.old", ProtoField.uint64, "Old value", base.HEX)
field("refusal.code", ProtoField.uint8, "Code", base.DEC, ERROR_CODES)
field("refusal.attempt", ProtoField.uint8, "Attempt refused")
field("refusal.stream", ProtoField.uint16, "Stream of the refused message")
field("refusal.msn", ProtoField.uint32, "MSN of the refused message")
field("refusal.token", ProtoField.uint32, "Token of the refused request", base.HEX)

field("ack", ProtoField.none, "Block")
field("ack.path", ProtoField.uint8, "Path")
field("ack.generation", ProtoField.uint8, "Generation")
field("ack.cumulative", ProtoField.uint32, "Cumulative PSN (next expected)")
field("ack.newest_tsn", ProtoField.uint32, "Newest TSN")
field("ack.newest_psn", ProtoField.uint32, "PSN of the newest TSN")
field("ack.delay", ProtoField.uint16, "Delay (16 ns)")
field("ack.delay_ns", ProtoField.uint32, "Delay (ns)")
field("ack.ce_count", ProtoField.uint16, "CE-marked packets")
field("ack.received", ProtoField.uint32, "DATA packets received")
field("ack.hint_mbps", ProtoField.uint32, "Rate hint (Mbit/s; 0 = none)")
field("ack.sack_words", ProtoField.uint8, "Numbers of the vector")
field("ack.sack", ProtoField.bytes, "SACK vector")
field("ack.sacked", ProtoField.string, "PSNs received beyond")
field("ack.missing", ProtoField.string, "PSNs missing before the last of them")
field("ack.sacked_count", ProtoField.uint16, "How many beyond")
field("ack.blocks", ProtoField.uint16, "Blocks")

field("close.reason", ProtoField.uint16, "Reason")
field("close.mode", ProtoField.uint8, "Mode", base.DEC, CLOSE_MODES)

field("crc", ProtoField.uint32, "CRC32C", base.HEX)
field("crc.expected", ProtoField.uint32, "CRC32C of the bytes", base.HEX)
field("crc.status", ProtoField.uint8, "CRC32C status", base.DEC, CRC_STATUS)
field("excess", ProtoField.bytes, "Bytes too many")
field("error", ProtoField.string, "Error")
field("truncated_capture", ProtoField.bool, "The capture holds only a part of the datagram")

-- What other packets say.
field("conversation", ProtoField.uint32, "Conversation index")
field("peer_connection", ProtoField.uint32, "Connection of the sender (from set-up)", base.HEX)
field("retransmission", ProtoField.bool, "This PSN was sent before")
field("first_sent_in", ProtoField.framenum, "First sent in", base.NONE, frametype.RETRANS_PREV)
field("last_sent_in", ProtoField.framenum, "Sent before this in", base.NONE, frametype.RETRANS_PREV)
field("same_transmission", ProtoField.framenum, "Same transmission as", base.NONE, frametype.DUP_ACK)
field("acked_in", ProtoField.framenum, "Acknowledged in", base.NONE, frametype.ACK)
field("ack.newest_frame", ProtoField.framenum, "Newest TSN was sent in", base.NONE, frametype.ACK)
field("ack.rtt", ProtoField.relative_time, "Time since then without the delay")
field("request_in", ProtoField.framenum, "Answers", base.NONE, frametype.REQUEST)
field("response_in", ProtoField.framenum, "Answered in", base.NONE, frametype.RESPONSE)

metaroce.fields = registered

-- The names are those of the core's counters of dropped datagrams.
local REASONS = {
  truncated = "Too short for its kind", length = "A length that its kind cannot have", checksum = "CRC32C is wrong",
  version = "Another version of the wire format", kind = "Unknown kind", flags = "A flag that is not allowed here",
  reserved = "A field without meaning is not zero", opcode = "Unknown opcode", message_length = "Impossible length of the message",
  bounds = "Payload outside of its message", payload = "Payload of a size that its opcode does not allow",
  atomic_operation = "Unknown atomic operation", error_code = "Unknown error code",
  sack = "Claims to have received what it calls the next expected", out_of_range = "A number outside its range",
  reject_reason = "Unknown reason",
}
local experts = {}
do
  local list = {}
  for name, text in pairs(REASONS) do
    local group = name == "checksum" and expert.group.CHECKSUM or expert.group.MALFORMED
    experts[name] = ProtoExpert.new("metaroce.error." .. name, text, group, expert.severity.ERROR)
    list[#list + 1] = experts[name]
  end
  local function more(name, text, group, severity)
    experts[name] = ProtoExpert.new("metaroce.expert." .. name, text, group, severity)
    list[#list + 1] = experts[name]
  end
  more("retransmission", "Sent before", expert.group.SEQUENCE, expert.severity.NOTE)
  more("copy", "This transmission was captured before: a copy, or another place of capture", expert.group.SEQUENCE, expert.severity.CHAT)
  more("stream", "A response outside stream 0xffff, or with an MSN (MR-WIRE-018)", expert.group.PROTOCOL, expert.severity.WARN)
  more("refused", "A message was refused", expert.group.RESPONSE_CODE, expert.severity.NOTE)
  metaroce.experts = list
end

-- Preferences ---------------------------------------------------------------------------------------------------------------------

local NEGOTIATED, PRESENT, ABSENT = 0, 1, 2
metaroce.prefs.port = Pref.uint("UDP port", 4791, "The UDP port of MetaRoCE; 0: none (then only heuristics and Decode As)")
metaroce.prefs.trailer = Pref.enum("CRC32C trailer", NEGOTIATED, "Whether datagrams other than INIT, RETRY, ACCEPT and REJECT end with a CRC32C", {
  { 1, "As seen at set-up, else present", NEGOTIATED }, { 2, "Always present", PRESENT }, { 3, "Left out", ABSENT },
}, false)
metaroce.prefs.verify = Pref.bool("Verify the CRC32C", true, "Compare the trailer with the CRC32C of the bytes before it")
metaroce.prefs.pass_on = Pref.bool("Pass other versions on", false,
  "Give datagrams whose first nibble is not 1 to the dissector that had the port before (RoCEv2 for 4791)")

-- Bits and CRC32C -----------------------------------------------------------------------------------------------------------------

-- Lua 5.3 and later have operators that 5.2 cannot even parse.
local bits = bit32 or bit or load([[return {
  band = function(a, b) return a & b end, bxor = function(a, b) return a ~ b end, rshift = function(a, n) return a >> n end }]])()

local function has_bit(number, mask)
  return math.floor(number / mask) % 2 == 1
end

-- Castagnoli, reflected (RFC 3720, appendix B.4).
local crc_table = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    local odd = crc % 2 == 1
    crc = bits.rshift(crc, 1)
    if odd then crc = bits.bxor(crc, 0x82f63b78) end
  end
  crc_table[byte] = crc
end

local function crc32c(text)
  local crc, band, bxor, rshift = MOST, bits.band, bits.bxor, bits.rshift
  for at = 1, #text do
    crc = bxor(rshift(crc, 8), crc_table[band(bxor(crc, text:byte(at)), 255)])
  end
  return bxor(crc, MOST) % 4294967296
end

-- Layouts -------------------------------------------------------------------------------------------------------------------------

-- Lists of {field, offset, size}.
local NOTHING = {}
local WITH_PATH = { { "path", 2, 1 }, { "generation", 3, 1 } }
local WITHOUT_PATH = { { "reserved", 2, 2 } }
local FLAG_FIELDS = { "flags.ack_request", "flags.retransmission", "flags.solicited", "flags.redirect", "flags.sack_words", "flags.unassigned" }

local NUMBERS = { -- at 8 and 12
  [INIT_KIND] = { { "reserved", 8, 4 }, { "attempt", 12, 4 } },
  [DATA_KIND] = { { "psn", 8, 4 }, { "tsn", 12, 4 } },
  [ACK_KIND] = NOTHING,
  [FENCE_ACK] = NOTHING,
  [PROBE] = { { "attempt", 8, 4 }, { "tsn", 12, 4 } },
  [FENCE] = { { "attempt", 8, 4 }, { "reserved", 12, 4 } },
  [ANNOUNCE] = { { "number", 8, 4 }, { "reserved", 12, 4 } },
  [HINT] = { { "number", 8, 4 }, { "reserved", 12, 4 } },
}
local ZEROS = { { "reserved", 8, 4 }, { "reserved", 12, 4 } }

local BODIES = {
  [RETRY] = { { "cookie.issued_ms", 16, 4 }, { "cookie.tag", 20, 16 } },
  [REJECT] = { { "reject.reason", 16, 2 }, { "reject.detail", 18, 2 } },
  [ANNOUNCE] = { { "demand", 16, 1 }, { "reserved", 17, 1 } },
  [HINT] = { { "hint_mbps", 16, 4 } },
  [CLOSE] = { { "source_connection", 16, 4 }, { "close.reason", 20, 2 }, { "close.mode", 22, 1 }, { "reserved", 23, 1 } },
  [CLOSE_ACK] = { { "source_connection", 16, 4 } },
  [ACCEPT] = { { "source_connection", 16, 4 }, { "hint_mbps", 20, 4 }, { "versions.chosen", 24, 1 }, { "reserved", 25, 3 } },
  [INIT_KIND] = {
    { "source_connection", 16, 4 }, { "versions.lowest", 20, 1 }, { "versions.highest", 21, 1 }, { "cookie.length", 22, 1 },
    { "reserved", 23, 1 },
  },
  [DATA_KIND] = {
    { "opcode", 16, 1 }, { "demand", 17, 1 }, { "stream", 18, 2 }, { "msn", 20, 4 }, { "length", 24, 4 }, { "offset", 28, 4 },
  },
}

local PARAMETERS = {
  { "parameters.paths", 0, 1 }, { "parameters.planes", 1, 1 }, { "parameters.window", 2, 2 }, { "parameters.streams", 4, 2 },
  { "parameters.open_messages", 6, 2 }, { "parameters.open_responses", 8, 2 }, { "reserved", 10, 2 },
  { "parameters.capabilities", 12, 4 }, { "parameters.capabilities.no_checksum", 12, 4 }, { "parameters.ingress_mbps", 16, 4 },
  { "parameters.service", 20, 4 },
}

-- Offsets from the newest PSN, which both forms of a block have in common; the vector follows.
local BLOCK_TAIL = {
  { "ack.newest_psn", 0, 4 }, { "ack.delay", 4, 2 }, { "ack.ce_count", 6, 2 }, { "ack.received", 8, 4 }, { "ack.hint_mbps", 12, 4 },
}

local ADDRESS = { "address", 32, 8 }
local NO_ADDRESS, NO_KEY, NO_IMMEDIATE = { "reserved", 32, 8 }, { "reserved", 40, 4 }, { "reserved", 44, 4 }
local KEY, TOKEN_AS_KEY, TOKEN, IMMEDIATE = { "key", 40, 4 }, { "token", 40, 4 }, { "token", 44, 4 }, { "immediate", 44, 4 }
local RSN, RSN_GAP, RSN_ATTEMPT = { "rsn", 32, 4 }, { "reserved", 36, 3 }, { "attempt", 39, 1 }
local BY_OPCODE = {
  [WRITE] = { ADDRESS, KEY, NO_IMMEDIATE },
  [WRITE_IMM] = { ADDRESS, KEY, IMMEDIATE },
  [SEND] = { RSN, RSN_GAP, RSN_ATTEMPT, NO_KEY, NO_IMMEDIATE },
  [SEND_IMM] = { RSN, RSN_GAP, RSN_ATTEMPT, NO_KEY, IMMEDIATE },
  [READ_REQUEST] = { ADDRESS, KEY, TOKEN },
  [READ_RESPONSE] = { NO_ADDRESS, TOKEN_AS_KEY, NO_IMMEDIATE },
  [ATOMIC_REQUEST] = { ADDRESS, KEY, TOKEN },
  [ATOMIC_RESPONSE] = { NO_ADDRESS, TOKEN_AS_KEY, NO_IMMEDIATE },
  [ERROR] = { NO_ADDRESS, NO_KEY, NO_IMMEDIATE },
  [NOP] = { NO_ADDRESS, NO_KEY, NO_IMMEDIATE },
}
local PAYLOADS = {
  [ATOMIC_REQUEST] = { { "atomic.operation", 48, 8 }, { "atomic.operand", 56, 8 }, { "atomic.swap", 64, 8 } },
  [ATOMIC_RESPONSE] = { { "atomic.old", 48, 8 } },
  [ERROR] = {
    { "refusal.code", 48, 1 }, { "refusal.attempt", 49, 1 }, { "refusal.stream", 50, 2 }, { "refusal.msn", 52, 4 },
    { "refusal.token", 56, 4 }, { "reserved", 60, 4 },
  },
}

-- A datagram ----------------------------------------------------------------------------------------------------------------------

-- `length`: bytes that the datagram has without the trailer; `here`: as many of them as were captured.
local Datagram = {}
Datagram.__index = Datagram

function Datagram.new(tvb)
  return setmetatable({ tvb = tvb, whole = tvb:reported_len(), captured = tvb:len(), length = tvb:reported_len(), here = tvb:len(),
    problems = {}, items = {} }, Datagram)
end

function Datagram:cut(trailer)
  self.length = math.max(self.whole - trailer, 0)
  self.here = math.min(self.captured, self.length)
end

-- The number at an offset, or nil if it is not in the datagram or not in the capture.
function Datagram:number(offset, size)
  if offset + size > self.here then return nil end
  return self.tvb(offset, size):uint()
end

function Datagram:fail(reason, offset, text)
  self.problems[#self.problems + 1] = { reason = reason, offset = offset, text = text }
end

-- Where the first byte of a range is that is not zero.
function Datagram:nonzero(offset, size)
  for at = offset, math.min(offset + size, self.here) - 1 do
    if self.tvb(at, 1):uint() ~= 0 then return at end
  end
  return nil
end

function Datagram:zero(offset, size)
  if self:nonzero(offset, size) then
    self:fail("reserved", offset, string.format("The field at byte %d is not zero", offset))
  end
end

function Datagram:range(name, offset, size, least, most)
  local number = self:number(offset, size)
  if number and (number < least or number > most) then
    self:fail("out_of_range", offset, string.format("%s is %d, not in %d..%d", name, number, least, most))
  end
  return number
end

-- Checks, in the order of an endpoint ---------------------------------------------------------------------------------------------

function Datagram:check_header()
  if self.whole < HEADER then
    self:fail("truncated", 0, string.format("%d bytes where at least %d are needed", self.whole, HEADER))
  end
  local first = self:number(0, 1)
  if not first then return false end
  self.version, self.kind = math.floor(first / 16), first % 16
  if self.whole < HEADER then return true end
  if self.version ~= VERSION then
    self:fail("version", 0, string.format("Wire format version %d", self.version))
    return false
  end
  if not KINDS[self.kind] then
    self:fail("kind", 0, string.format("Kind %d is unknown", self.kind))
    return false
  end
  self.flags = self:number(1, 1) or 0
  local allowed = ALLOWED[self.kind] or 0
  for bit = 0, 7 do
    if has_bit(self.flags, 2 ^ bit) and not has_bit(allowed, 2 ^ bit) then
      self:fail("flags", 1, string.format("Flags 0x%02x on %s", self.flags, KINDS[self.kind]))
      break
    end
  end
  return true
end

function Datagram:check_source()
  if self:number(16, 4) == 0 then self:fail("out_of_range", 16, "The connection of the sender is 0") end
end

-- Parameters at an offset; returns where they end.
function Datagram:check_parameters(at)
  if self.length < at + 24 then
    self:fail("truncated", at, "The parameters are not whole")
    return nil
  end
  local planes = self:range("Planes", at + 1, 1, 1, 8)
  self:zero(at + 10, 2)
  if not planes or planes < 1 or planes > 8 then return nil end
  local last = at + 24 + 20 * planes
  if self.length < last then
    self:fail("truncated", at + 1, "The planes are not whole")
    return nil
  end
  for plane = at + 24, last - 20, 20 do
    self:range("UDP port", plane + 16, 2, 1, 65535)
    self:range("Most payload bytes", plane + 18, 2, 256, 9000)
  end
  self:range("Paths", at, 1, 1, 255)
  self:range("Window", at + 2, 2, 1, 256)
  self:range("Streams", at + 4, 2, 1, 65535)
  self:range("Open messages", at + 6, 2, 1, 65535)
  self:range("Open responses", at + 8, 2, 1, 65535)
  return last
end

local CHECKS = {}

CHECKS[INIT_KIND] = function(d)
  d:zero(2, 2)
  d:zero(4, 4)
  d:zero(8, 4)
  local highest = d:range("Highest version", 21, 1, 1, 15)
  d:range("Lowest version", 20, 1, 1, highest or 15)
  d:zero(23, 1)
  local cookie = d:number(22, 1)
  if cookie == 0 then
    d:zero(24, 20)
  elseif cookie and cookie ~= 20 then
    d:fail("out_of_range", 22, string.format("Length of the cookie is %d", cookie))
  end
  local last = d:check_parameters(44)
  if last then d:zero(last, INIT - last) end
  d:check_source()
end

CHECKS[ACCEPT] = function(d)
  if d.length < 28 then return d:fail("truncated", 0, string.format("ACCEPT of %d bytes", d.length)) end
  d:zero(2, 2)
  d:zero(8, 4)
  d:zero(12, 4)
  d:range("Version chosen", 24, 1, 1, 15)
  d:zero(25, 3)
  local last = d:check_parameters(28)
  if last and d.length > last then d:fail("length", last, "Something follows the last plane") end
  d:check_source()
end

local function check_without_path(d)
  d:zero(2, 2)
  d:zero(8, 4)
  d:zero(12, 4)
end

CHECKS[RETRY] = check_without_path

CHECKS[REJECT] = function(d)
  check_without_path(d)
  local reason = d:number(16, 2)
  if reason and not REJECT_REASONS[reason] then d:fail("reject_reason", 16, string.format("Reason %d", reason)) end
end

CHECKS[CLOSE] = function(d)
  check_without_path(d)
  d:zero(23, 1)
  d:range("Mode", 22, 1, 0, 1)
  d:check_source()
end

CHECKS[CLOSE_ACK] = function(d)
  check_without_path(d)
  d:check_source()
end

CHECKS[PROBE] = function() end

CHECKS[FENCE] = function(d) d:zero(12, 4) end

CHECKS[HINT] = CHECKS[FENCE]

CHECKS[ANNOUNCE] = function(d)
  d:zero(12, 4)
  d:zero(17, 1)
end

-- Where the blocks of an acknowledgment are: `head` where path and generation are, `numbers` where the cumulative PSN is, `tail` where the
-- newest PSN is, `vector` with so many `words`, `finish` where the block ends. What was not captured is not there.
function Datagram:blocks()
  local all, at = {}, 0
  while at < self.length do
    local block
    if #all == 0 then
      block = { head = 2, numbers = 8, tail = 16, vector = ACK, words = math.floor((self.flags or 0) / 16) % 8 }
    else
      -- One that does not reach its length is not whole.
      local words = at + 2 < self.length and self:number(at + 2, 1) or at + 2 >= self.length and 0
      if not words then break end
      block = { head = at, numbers = at + 4, tail = at + 12, vector = at + BLOCK, words = words }
    end
    block.finish = block.vector + 8 * block.words
    all[#all + 1] = block
    at = block.finish
  end
  return all
end

local function check_blocks(d, most)
  if d.length < ACK then return d:fail("truncated", 0, string.format("%d bytes where at least %d are needed", d.length, ACK)) end
  for index, block in ipairs(d:blocks()) do
    if index > most then return d:fail("length", 0, "More than one block") end
    if index > 1 and block.vector <= d.length then d:zero(block.head + 3, 1) end
    if block.vector > d.length then return d:fail("length", 0, "Not made of whole blocks") end
    if block.words > 4 then return d:fail("sack", block.head, string.format("The vector of block %d has %d numbers", index - 1, block.words)) end
    if block.finish > d.length then return d:fail("length", 0, "Not made of whole blocks") end
    if block.words > 0 then
      local bits = d:number(block.vector + 7, 1)
      if bits and bits % 2 == 1 then d:fail("sack", block.vector, string.format("Bit 0 of the vector of block %d is set", index - 1)) end
      local last = block.finish - 8
      if block.finish <= d.here and not d:nonzero(last, 8) then
        d:fail("sack", last, string.format("The last number of the vector of block %d is 0", index - 1))
      end
    end
  end
end

CHECKS[ACK_KIND] = function(d) check_blocks(d, MOST) end
CHECKS[FENCE_ACK] = function(d) check_blocks(d, 1) end

-- Payloads of one size: what an endpoint finds wrong in them, and the message length that goes with them.
local FIXED = {
  [READ_REQUEST] = { size = 0 },
  [ATOMIC_REQUEST] = { size = 24, length = 8 },
  [ATOMIC_RESPONSE] = { size = 8, length = 8 },
  [ERROR] = { size = 16, length = 16 },
  [NOP] = { size = 0, length = 0 },
}

local function check_fixed(d, payload)
  local fixed = FIXED[d.opcode]
  d:zero(28, 4)
  if payload ~= fixed.size then
    d:fail("payload", 24, string.format("A payload of %d bytes, not %d", payload, fixed.size))
  elseif d.opcode == ATOMIC_REQUEST then
    local operation = d:number(52, 4)
    if operation and (operation > 1 or d:nonzero(48, 4)) then
      d:fail("atomic_operation", 48, "Unknown atomic operation")
    elseif operation == 0 then
      d:zero(64, 8)
    end
  elseif d.opcode == ERROR then
    local code = d:number(48, 1)
    if code and not ERROR_CODES[code] then d:fail("error_code", 48, string.format("Error code %d", code)) end
    d:zero(60, 4)
  end
  local length = d:number(24, 4)
  if fixed.length and length and length ~= fixed.length then
    d:fail("message_length", 24, string.format("Length of the message is %d, not %d", length, fixed.length))
  end
end

CHECKS[DATA_KIND] = function(d)
  if d.length < DATA then return d:fail("truncated", 0, string.format("%d bytes where at least %d are needed", d.length, DATA)) end
  d.opcode = d:number(16, 1)
  if not d.opcode then return end
  if not OPCODES[d.opcode] then return d:fail("opcode", 16, string.format("Opcode %d", d.opcode)) end
  if has_bit(d.flags, 4) and d.opcode ~= SEND and d.opcode ~= SEND_IMM and d.opcode ~= WRITE_IMM then
    d:fail("flags", 1, "SOLICITED on " .. OPCODES[d.opcode])
  end
  for _, entry in ipairs(BY_OPCODE[d.opcode]) do
    if entry[1] == "reserved" then d:zero(entry[2], entry[3]) end
  end
  local payload, length, offset = d.length - DATA, d:number(24, 4), d:number(28, 4)
  if not length or not offset then return end
  if length > 2147483647 then d:fail("message_length", 24, string.format("A message of %d bytes", length)) end
  if FIXED[d.opcode] then return check_fixed(d, payload) end
  if payload > 9000 or (payload == 0) ~= (length == 0) then
    d:fail("payload", 24, string.format("A payload of %d bytes in a message of %d", payload, length))
  elseif offset + payload > length then
    d:fail("bounds", 28, string.format("%d bytes at %d are outside a message of %d", payload, offset, length))
  end
end

function Datagram:check_body()
  if self.length < HEADER then
    return self:fail("truncated", 0, string.format("%d bytes before the trailer", self.length))
  end
  local length = LENGTHS[self.kind]
  if length and self.length ~= length then
    return self:fail("length", 0, string.format("%s of %d bytes, not %d", KINDS[self.kind], self.length, length))
  end
  CHECKS[self.kind](self)
end

-- Conversations -------------------------------------------------------------------------------------------------------------------

-- Filled while the capture is read first, looked up when a packet is shown.
local seen

local function forget()
  seen = { peer = {}, offered = {}, bare = {}, trailers = {}, index = {}, conversations = 0, paths = {}, requests = {}, frames = {} }
end
forget()
metaroce.init = forget

local function conversation_of(id, other)
  local index = seen.index[id] or (other and seen.index[other])
  if not index then
    index, seen.conversations = seen.conversations, seen.conversations + 1
  end
  seen.index[id] = index
  if other then seen.index[other] = index end
  return index
end

local function note_set_up(d, connection)
  local source = d:number(16, 4)
  if not source or source == 0 then return end
  local capabilities = d:number(d.kind == INIT_KIND and 56 or 40, 4) or 0
  if d.kind == INIT_KIND then
    seen.offered[source] = capabilities % 2 == 1
    conversation_of(source)
    return
  end
  seen.peer[connection], seen.peer[source] = source, connection
  conversation_of(connection, source)
  if d.kind == ACCEPT then
    local bare = seen.offered[connection] and capabilities % 2 == 1
    seen.bare[connection], seen.bare[source] = bare, bare
  end
end

-- Sequence numbers of a generation of a path to the connection `id`.
local function path_of(id, path, generation)
  local key = string.format("%d:%d:%d", id, path, generation)
  local known = seen.paths[key]
  if not known then
    known = { psn = {}, tsn = {} }
    seen.paths[key] = known
  end
  return known
end

-- At most so many PSNs before a cumulative one are looked for: more than any window.
local REACH = 1024

local function note_transmission(d, frame, now, number)
  local path = path_of(d:number(4, 4), d:number(2, 1), d:number(3, 1))
  local psn, tsn = d.kind == DATA_KIND and d:number(8, 4) or nil, d:number(12, 4)
  local sent = path.tsn[tsn]
  if sent and sent.psn == psn then
    frame.same = sent.number
    frame.sent = sent
    return
  end
  sent = { number = number, at = now, psn = psn }
  path.tsn[tsn], frame.sent = sent, sent
  if not psn then return end
  local packet = path.psn[psn]
  if packet then
    frame.first, frame.last = packet.first, packet.last
    packet.last = number
  else
    packet = { first = number, last = number }
    path.psn[psn] = packet
    path.low = path.low or psn
  end
  frame.packet = packet
end

local function note_acknowledged(path, psn, number)
  local packet = path.psn[psn]
  if packet and not packet.acked then packet.acked = number end
end

local function note_block(d, block, frame, now, number)
  local peer = seen.peer[d:number(4, 4)]
  local path = peer and seen.paths[string.format("%d:%d:%d", peer, block.path, block.generation)]
  if not path then return end
  local sent = path.tsn[block.newest_tsn]
  if sent then
    frame.newest = frame.newest or {}
    frame.newest[block.number] = { number = sent.number, rtt = now - sent.at - block.delay * 16e-9 }
    if not sent.psn and not sent.acked then sent.acked = number end
  end
  if path.low then
    local ahead = (block.cumulative - path.low) % 4294967296
    if ahead < 2147483648 then
      for back = math.min(ahead, REACH), 1, -1 do
        note_acknowledged(path, (block.cumulative - back) % 4294967296, number)
      end
      path.low = block.cumulative
    end
  end
  for _, bit in ipairs(block.set) do
    note_acknowledged(path, (block.cumulative + bit) % 4294967296, number)
  end
end

-- What a datagram asks for, or answers.
local function exchange(d, connection)
  local kind = d.kind
  local function key(name, id, path)
    return id and name .. id .. (path and string.format(":%d:%d", d:number(2, 1) or 0, d:number(3, 1) or 0) or "")
  end
  local peer = seen.peer[connection]
  if kind == INIT_KIND then return key("init", d:number(16, 4)), nil end
  if kind == RETRY or kind == ACCEPT or kind == REJECT then return nil, key("init", connection) end
  if kind == FENCE then return key("fence", connection, true), nil end
  if kind == FENCE_ACK then return nil, key("fence", peer, true) end
  if kind == ANNOUNCE then return key("announce" .. (d:number(8, 4) or 0) .. ":", connection), nil end
  if kind == HINT then return nil, key("announce" .. (d:number(8, 4) or 0) .. ":", peer) end
  if kind == CLOSE then return key("close", connection), nil end
  if kind == CLOSE_ACK then return nil, key("close", d:number(16, 4)) end
end

local function note_exchange(d, connection, frame, number)
  local request, response = exchange(d, connection)
  if request then seen.requests[request] = { number = number, frame = frame } end
  local asked = response and seen.requests[response]
  if asked then
    frame.request = asked.number
    asked.frame.response = asked.frame.response or number
  end
end

-- Showing -------------------------------------------------------------------------------------------------------------------------

local function show(d, tree, entries, from)
  for _, entry in ipairs(entries) do
    local at, size = (from or 0) + entry[2], entry[3]
    if at + size <= d.here then
      local item = tree:add(f[entry[1]], d.tvb(at, size))
      d.items[at] = d.items[at] or item
    end
  end
end

local function generated(tree, name, ...)
  local item = tree:add(f[name], ...)
  item:set_generated()
  return item
end

-- Bytes that a demand code stands for (table 8), as high and low words.
local function demand_bytes(code)
  if code < 4 then return UInt64.new(code, 0), tostring(code) end
  if code >= 252 then return UInt64.new(MOST, MOST), "unlimited" end
  local bytes = (4 + code % 4) * 2 ^ (math.floor(code / 4) - 1)
  return UInt64.new(math.floor(bytes % 4294967296), math.floor(bytes / 4294967296)), string.format("%.0f", bytes)
end

local function show_demand(d, tree, at)
  local code = d:number(at, 1)
  if not code then return "?" end
  local bytes, text = demand_bytes(code)
  generated(tree, "demand.bytes", d.tvb(at, 1), bytes)
  return text
end

-- 1, 2, 3, 5 as "1-3, 5", counted from a PSN.
local function ranges(list, from)
  local parts, at = {}, 1
  while at <= #list do
    local last = at
    while list[last + 1] == list[last] + 1 do last = last + 1 end
    local a, b = (from + list[at]) % 4294967296, (from + list[last]) % 4294967296
    parts[#parts + 1] = at == last and string.format("%d", a) or string.format("%d-%d", a, b)
    at = last + 1
  end
  return table.concat(parts, ", ")
end

-- Which bits of a block's vector of big-endian numbers are set, and which are not before the last of them.
local function read_vector(d, place)
  local set, clear, last = {}, {}, -1
  for bit = 0, 64 * place.words - 1 do
    local byte = place.vector + 8 * math.floor(bit / 64) + 7 - math.floor(bit % 64 / 8)
    if has_bit(d.tvb(byte, 1):uint(), 2 ^ (bit % 8)) then
      set[#set + 1] = bit
      last = bit
    end
  end
  local next = 1
  for bit = 0, last do
    if set[next] == bit then next = next + 1 else clear[#clear + 1] = bit end
  end
  return set, clear
end

local function show_block(d, tree, number, place)
  if place.words > 4 or place.finish > d.here then return nil end
  local head, numbers, tail = place.head, place.numbers, place.tail
  local from = number == 0 and 0 or head
  local branch = tree:add(f["ack"], d.tvb(from, place.finish - from))
  show(d, branch, { { "ack.path", 0, 1 }, { "ack.generation", 1, 1 } }, head)
  if number > 0 then show(d, branch, { { "ack.sack_words", 2, 1 }, { "reserved", 3, 1 } }, head) end
  show(d, branch, { { "ack.cumulative", 0, 4 }, { "ack.newest_tsn", 4, 4 } }, numbers)
  show(d, branch, BLOCK_TAIL, tail)
  local block = {
    number = number, path = d:number(head, 1), generation = d:number(head + 1, 1), cumulative = d:number(numbers, 4),
    newest_tsn = d:number(numbers + 4, 4), newest_psn = d:number(tail, 4), delay = d:number(tail + 4, 2), tree = branch,
  }
  local clear
  block.set, clear = read_vector(d, place)
  local size = 8 * place.words
  local vector = size > 0 and d.tvb(place.vector, size) or d.tvb(numbers, 4)
  if size > 0 then show(d, branch, { { "ack.sack", 0, size } }, place.vector) end
  generated(branch, "ack.delay_ns", d.tvb(tail + 4, 2), block.delay * 16)
  generated(branch, "ack.sacked_count", vector, #block.set)
  block.text = string.format("path %d gen %d cum %d", block.path, block.generation, block.cumulative)
  if block.newest_tsn ~= MOST then
    local of = block.newest_psn == MOST and "PROBE" or string.format("PSN %d", block.newest_psn)
    block.text = block.text .. string.format(" newest TSN %d (%s)", block.newest_tsn, of)
  end
  if #block.set > 0 then
    local sacked, missing = ranges(block.set, block.cumulative), ranges(clear, block.cumulative)
    generated(branch, "ack.sacked", vector, sacked)
    generated(branch, "ack.missing", vector, missing)
    block.text = block.text .. " received " .. sacked .. " missing " .. missing
  end
  branch:set_text(string.format("Block %d: %s", number, block.text))
  return block
end

local function show_blocks(d, tree)
  local blocks, places = {}, d:blocks()
  local count = math.max(#places, 1)
  for index, place in ipairs(places) do
    blocks[#blocks + 1] = show_block(d, tree, index - 1, place)
    if #blocks < index then break end
  end
  generated(tree, "ack.blocks", count)
  d.shown = blocks
  local text = blocks[1] and blocks[1].text or ""
  if count == 2 then text = text .. " + 1 block" elseif count > 2 then text = text .. string.format(" + %d blocks", count - 1) end
  return text
end

local function show_parameters(d, tree, at)
  if at + 24 > d.here then return at end
  local planes = math.min(d:number(at + 1, 1), 8)
  local size = math.min(24 + 20 * planes, d.here - at)
  local branch = tree:add(f["parameters"], d.tvb(at, size))
  show(d, branch, PARAMETERS, at)
  for plane = 0, planes - 1 do
    local first = at + 24 + 20 * plane
    if first + 20 > d.here then break end
    local leaf = branch:add(f["plane"], d.tvb(first, 20))
    leaf:set_text(string.format("Plane %d", plane))
    show(d, leaf, { { "plane.address", 0, 16 }, { "plane.port", 16, 2 }, { "plane.max_payload", 18, 2 } }, first)
    if not d:nonzero(first, 10) and d:number(first + 10, 2) == 65535 then
      generated(leaf, "plane.ipv4", d.tvb(first + 12, 4))
    end
  end
  return at + 24 + 20 * planes
end

local function show_data(d, tree)
  local opcode = d:number(16, 1)
  if opcode then show_demand(d, tree, 17) end
  show(d, tree, BY_OPCODE[opcode] or NOTHING)
  local payload = math.max(d.length - DATA, 0)
  generated(tree, "payload.length", payload)
  if d.here > DATA then
    local bytes = d.tvb(DATA, d.here - DATA)
    local fixed = FIXED[opcode]
    if PAYLOADS[opcode] and fixed.size == payload then
      local branch = tree:add(f["payload"], bytes)
      show(d, branch, PAYLOADS[opcode])
    else
      tree:add(f["payload"], bytes)
    end
  end
  if not opcode or d.here < DATA then return "" end
  local stream, msn = d:number(18, 2), d:number(20, 4)
  if (opcode == READ_RESPONSE or opcode >= ATOMIC_RESPONSE) and opcode <= NOP and (stream ~= 65535 or msn ~= 0) then
    tree:add_proto_expert_info(experts.stream)
  end
  local text = string.format(" PSN %d TSN %d %s", d:number(8, 4), d:number(12, 4), OPCODES[opcode] or string.format("opcode %d", opcode))
  if opcode == NOP then return text end
  if opcode == ERROR then
    local code = d:number(48, 1)
    if d:number(52, 4) then
      tree:add_proto_expert_info(experts.refused)
      return text .. string.format(" %s stream %d MSN %d", ERROR_CODES[code] or code, d:number(50, 2), d:number(52, 4))
    end
    return text
  end
  text = text .. string.format(" stream %d MSN %d off %d len %d", stream, msn, d:number(28, 4), payload)
  if opcode == READ_REQUEST then text = text .. string.format(" wants %d", d:number(24, 4)) end
  if opcode >= READ_REQUEST then
    local token = opcode == READ_RESPONSE or opcode == ATOMIC_RESPONSE
    text = text .. string.format(" token 0x%08x", d:number(token and 40 or 44, 4))
  end
  return text
end

local SHOW = {}

SHOW[DATA_KIND] = show_data
SHOW[ACK_KIND] = show_blocks
SHOW[FENCE_ACK] = show_blocks

SHOW[INIT_KIND] = function(d, tree)
  local cookie = d:number(22, 1)
  show(d, tree, cookie == 20 and { { "cookie.issued_ms", 24, 4 }, { "cookie.tag", 28, 16 } } or { { "reserved", 24, 20 } })
  local last = show_parameters(d, tree, 44)
  if last < d.here then show(d, tree, { { "reserved", last, d.here - last } }) end
  return string.format(" attempt %d from 0x%08x%s", d:number(12, 4) or 0, d:number(16, 4) or 0, cookie == 20 and " with cookie" or "")
end

SHOW[ACCEPT] = function(d, tree)
  show_parameters(d, tree, 28)
  return string.format(" from 0x%08x hint %d Mbit/s", d:number(16, 4) or 0, d:number(20, 4) or 0)
end

SHOW[REJECT] = function(d)
  local reason = d:number(16, 2) or 0
  return " " .. (REJECT_REASONS[reason] or reason)
end

SHOW[PROBE] = function(d) return string.format(" TSN %d attempt %d", d:number(12, 4) or 0, d:number(8, 4) or 0) end
SHOW[FENCE] = function(d) return string.format(" attempt %d", d:number(8, 4) or 0) end
SHOW[HINT] = function(d) return string.format(" number %d rate %d Mbit/s", d:number(8, 4) or 0, d:number(16, 4) or 0) end

SHOW[ANNOUNCE] = function(d, tree)
  return string.format(" number %d demand %s bytes", d:number(8, 4) or 0, show_demand(d, tree, 16))
end

SHOW[CLOSE] = function(d)
  local mode = d:number(22, 1)
  return string.format(" %s reason %d", CLOSE_MODES[mode] or "?", d:number(20, 2) or 0)
end

local HAS_PATH = {
  [DATA_KIND] = true, [ACK_KIND] = true, [PROBE] = true, [FENCE] = true, [FENCE_ACK] = true, [ANNOUNCE] = true, [HINT] = true,
}

local function show_frame(d, tree, frame)
  if frame.conversation then generated(tree, "conversation", frame.conversation) end
  if frame.peer then generated(tree, "peer_connection", frame.peer) end
  local note = ""
  if frame.same then
    generated(tree, "same_transmission", frame.same):add_proto_expert_info(experts.copy)
    note = string.format(" [same transmission as %d]", frame.same)
  end
  if frame.first then
    generated(tree, "retransmission", true):add_proto_expert_info(experts.retransmission)
    generated(tree, "first_sent_in", frame.first)
    generated(tree, "last_sent_in", frame.last)
    note = string.format(" [retransmission of %d]", frame.last)
  end
  local acked = frame.packet and frame.packet.acked or frame.sent and frame.sent.acked
  if acked then generated(tree, "acked_in", acked) end
  if frame.request then generated(tree, "request_in", frame.request) end
  if frame.response then generated(tree, "response_in", frame.response) end
  for _, block in ipairs(d.shown or NOTHING) do
    local newest = frame.newest and frame.newest[block.number]
    if newest then
      generated(block.tree, "ack.newest_frame", newest.number)
      if newest.rtt >= 0 then
        local seconds = math.floor(newest.rtt)
        generated(block.tree, "ack.rtt", NSTime.new(seconds, math.floor((newest.rtt - seconds) * 1e9 + 0.5)))
      end
    end
  end
  return note
end

local function show_trailer(d, tree, bytes)
  if bytes == 0 then
    generated(tree, "crc.status", 3)
    return
  end
  local whole = d.captured >= d.whole
  if whole then d.items.crc = tree:add(f["crc"], d.tvb(d.length, bytes)) end
  if not whole or not metaroce.prefs.verify then
    generated(tree, "crc.status", 2)
    return
  end
  generated(tree, "crc.status", d.crc_good and 1 or 0)
  if not d.crc_good then generated(tree, "crc.expected", d.crc_expected) end
end

local function show_problems(d, tree)
  for _, problem in ipairs(d.problems) do
    generated(tree, "error", problem.reason)
    local item = problem.reason == "checksum" and d.items.crc or d.items[problem.offset] or tree
    item:add_proto_expert_info(experts[problem.reason], REASONS[problem.reason] .. ": " .. problem.text)
  end
end

-- The dissector -------------------------------------------------------------------------------------------------------------------

local function trailer_bytes(d, connection, number)
  local wanted = metaroce.prefs.trailer
  if d.kind <= REJECT or wanted == PRESENT then return 4 end
  if wanted == ABSENT then return 0 end
  -- As it was known when the packet was first read: what came before the ACCEPT had to have a trailer.
  seen.trailers[number] = seen.trailers[number] or (seen.bare[connection] and 0 or 4)
  return seen.trailers[number]
end

local function check_trailer(d)
  if d.captured < d.whole or not metaroce.prefs.verify then return end
  d.crc_expected = crc32c(d.tvb:raw(0, d.length))
  local got = d.tvb(d.length, 4):uint()
  d.crc_good = got == d.crc_expected
  if not d.crc_good then
    d:fail("checksum", d.length, string.format("0x%08x, the bytes have 0x%08x", got, d.crc_expected))
  end
end

local function note(d, connection, pinfo)
  local frame = seen.frames[pinfo.number]
  if pinfo.visited and frame then return frame end
  frame = {}
  -- What an endpoint would drop tells nothing about a conversation.
  if #d.problems > 0 or d.length < HEADER or d.captured < HEADER then return frame end
  seen.frames[pinfo.number] = frame
  if d.kind == INIT_KIND or d.kind == ACCEPT or d.kind == CLOSE or d.kind == CLOSE_ACK then note_set_up(d, connection) end
  local id = d.kind == INIT_KIND and d:number(16, 4) or connection
  if id then frame.conversation = conversation_of(id) end
  if d.kind ~= INIT_KIND then frame.peer = seen.peer[connection] end
  if d.kind == DATA_KIND or d.kind == PROBE then note_transmission(d, frame, pinfo.rel_ts, pinfo.number) end
  for _, block in ipairs(d.shown or NOTHING) do note_block(d, block, frame, pinfo.rel_ts, pinfo.number) end
  note_exchange(d, connection, frame, pinfo.number)
  return frame
end

local function dissect_known(d, pinfo, tree)
  show(d, tree, { { "version", 0, 1 }, { "kind", 0, 1 } })
  if not d:check_header() or d.whole < HEADER then
    show_problems(d, tree)
    pinfo.cols.info = "Malformed" .. (d.problems[1] and ": " .. d.problems[1].text or "")
    return
  end
  local connection = d:number(4, 4)
  local bytes = trailer_bytes(d, connection, pinfo.number)
  d:cut(bytes)
  if bytes > 0 then check_trailer(d) end
  d:check_body()

  if d.here >= 2 then
    local flags = tree:add(f["flags"], d.tvb(1, 1))
    d.items[1] = flags
    for _, name in ipairs(FLAG_FIELDS) do flags:add(f[name], d.tvb(1, 1)) end
  end
  show(d, tree, HAS_PATH[d.kind] and WITH_PATH or WITHOUT_PATH)
  show(d, tree, { { "connection", 4, 4 } })
  show(d, tree, NUMBERS[d.kind] or ZEROS)
  show(d, tree, BODIES[d.kind] or NOTHING)
  local text = KINDS[d.kind]
  if HAS_PATH[d.kind] and d.here >= 4 and not (d.kind == ACK_KIND or d.kind == FENCE_ACK) then
    text = text .. string.format(" path %d gen %d", d:number(2, 1), d:number(3, 1))
  elseif d.kind == ACK_KIND or d.kind == FENCE_ACK then
    text = text .. " "
  end
  if SHOW[d.kind] then text = text .. SHOW[d.kind](d, tree) end
  local fixed = LENGTHS[d.kind]
  if fixed and d.here > fixed then tree:add(f["excess"], d.tvb(fixed, d.here - fixed)) end
  show_trailer(d, tree, bytes)
  text = text .. show_frame(d, tree, note(d, connection, pinfo))
  if d.captured < d.whole then generated(tree, "truncated_capture", true) end
  show_problems(d, tree)
  if #d.problems > 0 then text = text .. " [MALFORMED: " .. d.problems[1].text .. "]" end
  pinfo.cols.info = text
  tree:append_text(", " .. text)
end

local udp_port = DissectorTable.get("udp.port")
local registered_port, before

function metaroce.dissector(tvb, pinfo, root)
  local d = Datagram.new(tvb)
  if d.captured == 0 then return 0 end
  local version = math.floor(tvb(0, 1):uint() / 16)
  if version ~= VERSION and metaroce.prefs.pass_on and before then return before:call(tvb, pinfo, root) end
  pinfo.cols.protocol = "MetaRoCE"
  dissect_known(d, pinfo, root:add(metaroce, tvb()))
  return d.captured
end

-- On other ports: whatever begins as a datagram of ours, and is of a connection that was seen or ends with its own CRC32C.
metaroce:register_heuristic("udp", function(tvb, pinfo, root)
  local d = Datagram.new(tvb)
  if d.captured < HEADER or not d:check_header() or #d.problems > 0 then return false end
  if not seen.index[d:number(4, 4)] then
    if d.captured < d.whole or d.whole < HEADER + 4 then return false end
    if crc32c(tvb:raw(0, d.whole - 4)) ~= tvb(d.whole - 4, 4):uint() then return false end
  end
  metaroce.dissector(tvb, pinfo, root)
  return true
end)

local function prefs_changed()
  if registered_port == metaroce.prefs.port then return end
  if registered_port and registered_port > 0 then
    udp_port:remove(registered_port, metaroce)
    if before then udp_port:add(registered_port, before) end
  end
  registered_port, before = metaroce.prefs.port, nil
  if registered_port > 0 then
    before = udp_port:get_dissector(registered_port)
    udp_port:add(registered_port, metaroce)
  else
    udp_port:add_for_decode_as(metaroce)
  end
end
metaroce.prefs_changed = prefs_changed
prefs_changed()
