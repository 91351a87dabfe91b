/* The codec and the PSN set alone, as a reference model: known bytes, every kind there and back, damage refused, and the set beside a plain
 * array. */
#include <string.h>

#include "check.h"
#include "wire.h"

/* Encodes, decodes, encodes again: the same bytes, and what was put in is what comes out. */
static size_t round_trip(const mr_packet *packet, const mr_ack_block *blocks, mr_packet *back,
                         uint8_t *bytes, size_t size)
{
    static uint8_t again[16384];
    static mr_ack_block found[32];
    size_t length = 0, second = 0;
    EXPECT(MR_OK, mr_encode(packet, blocks, 1, bytes, size, &length));
    EXPECT(MR_OK, mr_decode(bytes, length, 1, back, found, 32));
    CHECK(back->kind == packet->kind && back->block_count == packet->block_count);
    CHECK(back->payload_length == packet->payload_length);
    if (packet->payload_length != 0)
        CHECK(memcmp(back->payload, packet->payload, packet->payload_length) == 0);
    for (size_t i = 0; i < back->block_count; i++) {
        CHECK(memcmp(found[i].sack, blocks[i].sack, sizeof blocks[i].sack) == 0);
        CHECK(found[i].cumulative == blocks[i].cumulative && found[i].path == blocks[i].path);
        CHECK(found[i].newest_tsn == blocks[i].newest_tsn && found[i].delay == blocks[i].delay);
        CHECK(found[i].received == blocks[i].received && found[i].ce_count == blocks[i].ce_count);
    }
    EXPECT(MR_OK, mr_encode(back, found, 1, again, sizeof again, &second));
    CHECK(second == length && memcmp(bytes, again, length) == 0);
    /* Any one bit that is turned is noticed. */
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= (uint8_t)(1u << i % 8);
        CHECK(mr_decode(bytes, length, 1, back, NULL, 0) < 0);
        bytes[i] ^= (uint8_t)(1u << i % 8);
    }
    /* And so is any end that is missing. */
    for (size_t cut = 0; cut < length; cut++)
        CHECK(mr_decode(bytes, cut, 1, back, NULL, 0) < 0);
    EXPECT(MR_OK, mr_decode(bytes, length, 1, back, NULL, 0));
    for (size_t room = 0; room < length; room++)
        EXPECT(MR_ERROR_BUFFER_TOO_SMALL, mr_encode(packet, blocks, 1, again, room, &second));
    return length;
}

static void parameters(mr_parameters *p)
{
    EXPECT(MR_OK, mr_address_ipv4(&p->addresses[0], 192, 0, 2, 1, 4793));
    EXPECT(MR_OK, mr_address_ipv4(&p->addresses[1], 192, 0, 2, 2, 4793));
    p->max_payload[0] = p->max_payload[1] = 4096;
    p->planes = 2;
    p->paths = 8;
    p->window = 256;
    p->streams = p->open_messages = p->open_responses = 4;
    p->capabilities = 1;
    p->ingress_mbps = 100000;
    p->service = 7;
}

static void known_bytes(void)
{
    /* A HINT: version 1 and kind 10, flags, path, generation, connection, number, TSN 0, the rate. */
    static const uint8_t hint[20] = {0x1a, 0, 3, 1, 0, 0xc0, 0xff, 0xee, 0, 0,
                                     0,    9, 0, 0, 0, 0,    0,    1,    0x86, 0xa0};
    static const char digits[] = "123456789";
    mr_packet packet, back;
    uint8_t bytes[64];
    size_t length = 0;
    uint32_t crc = 0, half = 0;
    memset(&packet, 0, sizeof packet);
    packet.kind = MR_KIND_HINT;
    packet.path = 3;
    packet.generation = 1;
    packet.connection = 0xc0ffee;
    packet.psn = 9;
    packet.rate_mbps = 100000;
    EXPECT(MR_OK, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    CHECK(length == sizeof hint && memcmp(bytes, hint, length) == 0);
    EXPECT(MR_OK, mr_decode(hint, sizeof hint, 0, &back, NULL, 0));
    CHECK(back.rate_mbps == 100000 && back.connection == 0xc0ffee && back.psn == 9);
    EXPECT(MR_OK, mr_crc32c(0, (const uint8_t *)digits, 9, &crc));
    CHECK(crc == 0xe3069283u);
    EXPECT(MR_OK, mr_crc32c(0, (const uint8_t *)digits, 4, &half));
    EXPECT(MR_OK, mr_crc32c(half, (const uint8_t *)digits + 4, 5, &half));
    CHECK(half == crc);
    CHECK(mr_demand_bytes(mr_demand_code(1000000)) == 1048576 && mr_demand_code(0) == 0);
}

static void every_kind(void)
{
    static uint8_t bytes[16384], payload[4096];
    static mr_ack_block blocks[3];
    mr_packet packet, back;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 31);
    for (uint8_t kind = MR_KIND_INIT; kind <= MR_KIND_CLOSE_ACK; kind++) {
        memset(&packet, 0, sizeof packet);
        packet.kind = kind;
        packet.connection = kind == MR_KIND_INIT ? 0 : 0x12345678;
        packet.source = 0xabcdef01;
        packet.version = 1;
        packet.highest_version = 3;
        packet.reason = 2;
        packet.detail = 11;
        packet.mode = MR_CLOSE_ABORT;
        packet.rate_mbps = 25000;
        packet.demand = mr_demand_code(70000);
        packet.has_cookie = 1;
        packet.cookie_issued_ms = 99;
        memset(packet.cookie_tag, 0x5a, sizeof packet.cookie_tag);
        packet.psn = 0x01020304;
        packet.tsn = 0x05060708;
        packet.path = 2;
        packet.generation = 5;
        parameters(&packet.parameters);
        if (kind == MR_KIND_DATA) {
            packet.flags = MR_FLAG_ACK_REQUEST | MR_FLAG_RETRANSMISSION;
            packet.data.address = 0x1122334455667788u;
            packet.data.key = 77;
            packet.data.length = 1000000;
            packet.data.offset = 40960;
            packet.data.msn = 6;
            packet.data.stream = 3;
            packet.payload = payload;
            packet.payload_length = 1024;
        }
        memset(blocks, 0, sizeof blocks);
        if (kind == MR_KIND_ACK || kind == MR_KIND_FENCE_ACK) {
            packet.block_count = kind == MR_KIND_ACK ? 3 : 1;
            for (unsigned i = 0; i < 3; i++) {
                blocks[i].path = (uint8_t)(2 + i);
                blocks[i].cumulative = 0xfffffff0u + i;
                blocks[i].newest_tsn = 500 + i;
                blocks[i].newest_psn = 400;
                blocks[i].received = 300;
                blocks[i].hint_mbps = 1000;
                blocks[i].ce_count = 9;
                blocks[i].delay = 50;
                blocks[i].sack[0] = i == 0 ? 0 : 6;
                blocks[i].sack[3] = i == 2 ? 1 : 0;
            }
        }
        round_trip(&packet, blocks, &back, bytes, sizeof bytes);
    }
}

static void refusals(void)
{
    uint8_t bytes[64];
    size_t length;
    mr_packet packet;
    memset(&packet, 0, sizeof packet);
    packet.kind = 13;
    EXPECT(MR_ERROR_DECODE_KIND, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    packet.kind = MR_KIND_CLOSE;
    EXPECT(MR_ERROR_DECODE_OUT_OF_RANGE, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    packet.kind = MR_KIND_REJECT;
    EXPECT(MR_ERROR_DECODE_REJECT_REASON, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    packet.kind = MR_KIND_DATA;
    packet.data.opcode = 10;
    EXPECT(MR_ERROR_DECODE_OPCODE, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    packet.data.opcode = 0;
    packet.data.length = 4;
    packet.data.offset = 4;
    packet.payload = bytes;
    packet.payload_length = 1;
    EXPECT(MR_ERROR_DECODE_BOUNDS, mr_encode(&packet, NULL, 0, bytes, sizeof bytes, &length));
    memset(bytes, 0x2f, sizeof bytes);
    EXPECT(MR_ERROR_DECODE_VERSION, mr_decode(bytes, sizeof bytes, 0, &packet, NULL, 0));
    EXPECT(MR_ERROR_DECODE_TRUNCATED, mr_decode(bytes, 15, 0, &packet, NULL, 0));
    EXPECT(MR_ERROR_DECODE_TRUNCATED, mr_decode(NULL, 0, 0, &packet, NULL, 0));
}

/* 200 sets of 2,000 arrivals each, beside an array of what was seen; across the wrap of 32 bits they cannot get, since a path begins at 0. */
static void sets(void)
{
    struct wire random;
    struct flight none[1];
    uint8_t nothing[1];
    wire_init(&random, 7, 0, none, nothing, 1, 1);
    for (unsigned run = 0; run < 200; run++) {
        static uint8_t seen[4096];
        uint32_t low = 0, received = 0, ce = 0, newest = 0;
        mr_psn_set set;
        mr_ack_block block;
        memset(seen, 0, sizeof seen);
        EXPECT(MR_OK, mr_psn_set_init(&set));
        for (uint32_t tsn = 0; tsn < 2000; tsn++) {
            uint64_t number = wire_random(&random);
            uint32_t span = run % 2 ? 12 : 280, psn = low + (uint32_t)(number % span);
            uint8_t mark = number >> 40 & 1;
            int32_t expected = psn >= low + 256 ? MR_ARRIVAL_BEYOND_WINDOW
                               : seen[psn]      ? MR_ARRIVAL_DUPLICATE
                                                : MR_ARRIVAL_NEW;
            if (number >> 60 == 0 && low > 0) { /* One that is older than all. */
                psn = (uint32_t)(number >> 8) % low;
                expected = MR_ARRIVAL_DUPLICATE;
            }
            EXPECT(expected, mr_psn_set_insert(&set, 1000 + 16 * (uint64_t)tsn, psn, tsn, mark));
            if (expected != MR_ARRIVAL_BEYOND_WINDOW) {
                received++;
                ce += mark;
                newest = tsn;
                seen[psn] = 1;
            }
            while (seen[low])
                low++;
            EXPECT(MR_OK, mr_psn_set_block(&set, 1000 + 16 * (uint64_t)newest + 160, 9, 123, &block));
            CHECK(block.cumulative == low && block.path == 9 && block.hint_mbps == 123);
            CHECK(block.received == received && block.ce_count == (uint16_t)ce);
            if (received != 0)
                CHECK(block.newest_tsn == newest && block.delay == 10);
            for (uint32_t i = 0; i < 256; i++)
                CHECK((block.sack[i / 64] >> i % 64 & 1) == seen[low + i]);
        }
    }
}

int main(void)
{
    known_bytes();
    every_kind();
    refusals();
    sets();
    printf("codec: 13 kinds there and back, every damaged bit refused; 400,000 arrivals as a plain array has them\n");
    return 0;
}
