-- Wireshark dissector for the datagrams that stand for packets of transports that are models in the simulator
-- (sim/src/capture/segment.rs has the layout): UDP port 14791.

local model = Proto("metaroce_model", "Simulated transport (model)")

-- name, type, offset, size, title, base
local LAYOUT = {
  { "version", ProtoField.uint8, 4, 1, "Version of the format", base.DEC },
  { "kind", ProtoField.uint8, 5, 1, "Kind (0 = data; others by the transport)", base.DEC },
  { "flags", ProtoField.uint8, 6, 1, "Flags (by the transport)", base.HEX },
  { "lane", ProtoField.uint16, 8, 2, "Lane", base.DEC },
  { "flow", ProtoField.uint32, 12, 4, "Flow", base.DEC },
  { "message", ProtoField.uint32, 16, 4, "Message", base.DEC },
  { "offset", ProtoField.uint32, 20, 4, "Offset in the message (packets)", base.DEC },
  { "payload", ProtoField.uint32, 24, 4, "Payload (bytes)", base.DEC },
  { "length", ProtoField.uint32, 28, 4, "Length of the modelled datagram (bytes)", base.DEC },
  { "sequence", ProtoField.uint64, 32, 8, "Sequence number", base.DEC },
  { "cumulative", ProtoField.uint64, 40, 8, "Cumulative", base.DEC },
  { "vector", ProtoField.uint64, 48, 8, "Vector", base.HEX },
  { "value", ProtoField.uint64, 56, 8, "Value", base.DEC },
  { "stamp", ProtoField.uint64, 64, 8, "Stamp (ps)", base.DEC },
}
local SIZE = 72

local fields = {}
for index, row in ipairs(LAYOUT) do
  fields[index] = row[2]("metaroce_model." .. row[1], row[5], row[6])
end
local trimmed = ProtoField.bool("metaroce_model.trimmed", "Trimmed", 8, nil, 0x01)
local damaged = ProtoField.bool("metaroce_model.damaged", "Damaged", 8, nil, 0x02)
fields[#fields + 1], fields[#fields + 2] = trimmed, damaged
model.fields = fields

function model.dissector(tvb, pinfo, root)
  if tvb:len() < SIZE or tvb(0, 4):string() ~= "MRsm" then return 0 end
  local tree = root:add(model, tvb(0, SIZE))
  for index, row in ipairs(LAYOUT) do
    tree:add(fields[index], tvb(row[3], row[4]))
  end
  tree:add(trimmed, tvb(7, 1))
  tree:add(damaged, tvb(7, 1))
  local kind, flow, message = tvb(5, 1):uint(), tvb(12, 4):uint(), tvb(16, 4):uint()
  pinfo.cols.protocol = "Model"
  pinfo.cols.info = string.format("%s flow %d message %d off %d seq %s cum %s", kind == 0 and "data" or string.format("kind %d", kind),
    flow, message, tvb(20, 4):uint(), tostring(tvb(32, 8):uint64()), tostring(tvb(40, 8):uint64()))
  return SIZE
end

DissectorTable.get("udp.port"):add(14791, model)
