/* The conversation of docs/conversation.md, driven in C99 with its own loop and its own wire, on a host and on bare metal: its hash must be
 * the one that everybody else comes to. */
#include <string.h>

#include "check.h"
#include "wire.h"

#define BASE 0x1000u
#define REGION 8192u
#define COUNTER 8000u
#define PORT 4793u
#define FIRST_PORT 49152u
#define ROUNDS 10u
#define DATAGRAM 640u
#define FLIGHTS 24u
#define ENDPOINT_BYTES 16384u

static struct {
    mr_endpoint *endpoint;
    mr_region region;
    uint32_t connection;
    int closed;
    uint8_t ram[REGION];
} sides[2];

/* C99 has no alignas: unions of the largest types come close, the rest is done by hand. */
static uint8_t memory[2][ENDPOINT_BYTES + MR_ENDPOINT_ALIGNMENT];
static struct flight flights[FLIGHTS];
static uint8_t flight_bytes[FLIGHTS * DATAGRAM];
static uint8_t buffer[MR_HEADER_BUFFER];
static struct wire wire;
static uint64_t now_ns = 1000000;
static uint32_t posted, completed, received;

static uint8_t pattern(unsigned side, unsigned k)
{
    return (uint8_t)(7 * k + 101 * side + (k >> 8));
}

static void *aligned(uint8_t *bytes)
{
    uintptr_t at = (uintptr_t)bytes;
    return bytes + (MR_ENDPOINT_ALIGNMENT - at % MR_ENDPOINT_ALIGNMENT) % MR_ENDPOINT_ALIGNMENT;
}

static mr_address address_of(unsigned side)
{
    mr_address address;
    EXPECT(MR_OK, mr_address_ipv4(&address, 192, 0, 2, (uint8_t)(1 + side), PORT));
    return address;
}

static void make(unsigned side)
{
    mr_endpoint_config config;
    uint8_t secret[32];
    size_t size = mr_endpoint_size(MR_PROFILE_SMALL, 2);
    CHECK(size > 0 && size <= ENDPOINT_BYTES);
    EXPECT(MR_OK, mr_endpoint_config_default(&config));
    config.addresses[0] = address_of(side);
    config.plane_mbps = 1000;
    config.payload_bytes = 512;
    config.entropies = 256;
    config.listen = side == 1;
    memset(secret, (int)side + 1, sizeof secret);
    EXPECT(MR_OK, mr_endpoint_init(aligned(memory[side]), size, MR_PROFILE_SMALL, 2, &config, NULL,
                                   secret, NULL, &sides[side].endpoint));
    EXPECT(MR_OK, mr_endpoint_register(sides[side].endpoint, BASE, REGION, MR_ACCESS_ALL,
                                       sides[side].ram, &sides[side].region));
    for (unsigned k = 0; k < REGION; k++)
        sides[side].ram[k] = pattern(side, k);
    memset(sides[side].ram + COUNTER, 0, 8);
}

static void post_receive(uint64_t id)
{
    mr_receive receive;
    memset(&receive, 0, sizeof receive);
    receive.id = id;
    receive.local.region = sides[1].region.index;
    receive.local.offset = 7000;
    receive.local.length = 800;
    EXPECT(MR_OK, mr_endpoint_post_receive(sides[1].endpoint, sides[1].connection, 0, &receive));
}

/* The next operation, or the end. */
static void post(void)
{
    uint32_t k = posted, n = k / 6;
    mr_work work;
    if (k == 6 * ROUNDS) {
        EXPECT(MR_OK, mr_endpoint_close(sides[0].endpoint, now_ns, sides[0].connection,
                                        MR_CLOSE_DRAIN, 0));
        return;
    }
    memset(&work, 0, sizeof work);
    work.id = k;
    work.local.region = sides[0].region.index;
    work.remote.key = sides[1].region.key;
    switch (k % 6) {
    case 0:
        work.operation = MR_WRITE;
        work.local.length = 4000;
        work.remote.address = BASE;
        break;
    case 1:
        work.operation = MR_SEND_IMM;
        work.immediate = n;
        work.local.offset = 100;
        work.local.length = 700;
        break;
    case 2:
        work.operation = MR_READ;
        work.local.offset = 4000;
        work.local.length = 3000;
        work.remote.address = BASE + 500;
        break;
    case 3:
        work.operation = MR_FETCH_ADD;
        work.operand = 5;
        work.local.offset = 7992;
        work.local.length = 8;
        work.remote.address = BASE + COUNTER;
        break;
    case 4:
        work.operation = MR_COMPARE_SWAP;
        work.operand = 6 * (uint64_t)n + 5;
        work.swap = 6 * (uint64_t)n + 6;
        work.local.offset = 7984;
        work.local.length = 8;
        work.remote.address = BASE + COUNTER;
        break;
    default:
        work.operation = MR_WRITE_IMM;
        work.immediate = 0x1000 + n;
        work.local.offset = 4000;
        work.local.length = 1500;
        work.remote.address = BASE + 5000;
        break;
    }
    EXPECT(MR_OK, mr_endpoint_post(sides[0].endpoint, now_ns, sides[0].connection, 0, &work));
    posted++;
}

static void used(const mr_completion *completion)
{
    uint32_t n = received / 2;
    if (completion->status == MR_STATUS_FLUSHED && completed == 6 * ROUNDS)
        return; /* A buffer that was left over. */
    CHECK(completion->status == MR_STATUS_SUCCESS && completion->has_immediate);
    if (received % 2 == 0) {
        CHECK(completion->kind == MR_COMPLETION_RECEIVE);
        CHECK(completion->length == 700 && completion->immediate == n);
    } else {
        CHECK(completion->kind == MR_COMPLETION_RECEIVE_WRITE_IMM);
        CHECK(completion->length == 1500 && completion->immediate == 0x1000 + n);
    }
    received++;
    post_receive((uint64_t)received + 1);
}

static void events(void)
{
    mr_event event;
    int32_t some;
    while ((some = mr_endpoint_poll_event(sides[0].endpoint, &event)) == 1) {
        if (event.kind == MR_EVENT_CONNECTED) {
            post();
        } else if (event.kind == MR_EVENT_COMPLETION) {
            CHECK(event.completion.status == MR_STATUS_SUCCESS);
            CHECK(event.completion.id == completed);
            completed++;
            post();
        } else if (event.kind == MR_EVENT_CLOSED) {
            sides[0].closed = 1;
        }
    }
    EXPECT(0, some);
    while ((some = mr_endpoint_poll_event(sides[1].endpoint, &event)) == 1) {
        if (event.kind == MR_EVENT_CONNECTED) {
            sides[1].connection = event.connection;
            post_receive(0);
            post_receive(1);
        } else if (event.kind == MR_EVENT_COMPLETION) {
            used(&event.completion);
        } else if (event.kind == MR_EVENT_CLOSED) {
            sides[1].closed = 1;
        }
    }
    EXPECT(0, some);
}

static void transmit(unsigned side)
{
    mr_transmit out;
    int32_t some;
    while ((some = mr_endpoint_poll_datagram(sides[side].endpoint, now_ns, buffer, sizeof buffer,
                                             &out)) == 1)
        CHECK(wire_send(&wire, now_ns, (uint8_t)(1 - side), 0, (uint16_t)(FIRST_PORT + out.entropy),
                        buffer, out.length));
    EXPECT(0, some);
}

static void arrive_or_fire(void)
{
    uint64_t next = wire_next(&wire), at;
    const uint8_t *bytes;
    const struct flight *flight;
    for (unsigned side = 0; side < 2; side++)
        if (mr_endpoint_poll_timeout(sides[side].endpoint, &at) == 1 && at < next)
            next = at;
    CHECK(next != UINT64_MAX);
    if (next > now_ns)
        now_ns = next;
    flight = wire_arrival(&wire, now_ns, &bytes);
    if (flight != NULL) {
        mr_receive_meta meta;
        memset(&meta, 0, sizeof meta);
        meta.source = address_of(1u - flight->to);
        meta.source.port = flight->source_port;
        meta.ecn = 2;
        CHECK(mr_endpoint_handle_datagram(sides[flight->to].endpoint, now_ns, &meta, bytes,
                                          flight->length, NULL) >= 0);
        return;
    }
    for (unsigned side = 0; side < 2; side++)
        if (mr_endpoint_poll_timeout(sides[side].endpoint, &at) == 1 && at <= now_ns)
            EXPECT(MR_OK, mr_endpoint_handle_timeout(sides[side].endpoint, now_ns));
}

/* What must be in both memories at the end follows from the script alone. */
static void check_bytes(void)
{
    const uint8_t *ram = sides[1].ram;
    uint64_t word;
    memcpy(&word, ram + COUNTER, 8);
    CHECK(word == 6 * ROUNDS);
    for (unsigned k = 0; k < REGION; k++) {
        uint8_t expected = pattern(1, k);
        if (k >= COUNTER && k < COUNTER + 8)
            continue;
        if (k < 4000)
            expected = pattern(0, k);
        else if (k >= 5000 && k < 6500)
            expected = pattern(0, k - 4500);
        else if (k >= 7000 && k < 7700)
            expected = pattern(0, k - 6900);
        CHECK(ram[k] == expected);
    }
    for (unsigned k = 0; k < 4000; k++)
        CHECK(sides[0].ram[k] == pattern(0, k));
    for (unsigned k = 0; k < 3000; k++)
        CHECK(sides[0].ram[4000 + k] == (k < 3500 ? pattern(0, 500 + k) : pattern(1, 500 + k)));
}

int main(void)
{
    mr_connection_config config;
    mr_address peer = address_of(1);
    wire_init(&wire, 1, 5, flights, flight_bytes, FLIGHTS, DATAGRAM);
    make(0);
    make(1);
    EXPECT(MR_OK, mr_connection_config_default(&config));
    config.paths = 4;
    EXPECT(MR_OK, mr_endpoint_connect(sides[0].endpoint, now_ns, &peer, 1, &config,
                                      &sides[0].connection));
    while (!sides[0].closed || !sides[1].closed) {
        uint32_t before;
        do {
            before = wire.sent;
            events();
            transmit(0);
            transmit(1);
        } while (wire.sent != before);
        if (!sides[0].closed || !sides[1].closed)
            arrive_or_fire();
    }
    CHECK(completed == 6 * ROUNDS && received == 2 * ROUNDS);
    check_bytes();
    printf("conversation: hash 0x%08lx%08lx, %lu datagrams, %lu lost, over at %lu ns\n",
           (unsigned long)(wire.hash >> 32), (unsigned long)(wire.hash & 0xffffffffu),
           (unsigned long)wire.sent, (unsigned long)wire.lost, (unsigned long)now_ns);
    CHECK(wire.hash == UINT64_C(0xdb529ab9fbab2b66));
    CHECK(wire.sent == 964 && wire.lost == 52 && now_ns == 3660192);
    return 0;
}
