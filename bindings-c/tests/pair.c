/* Two endpoints of the large profile over a wire that loses and reorders: all operations on 16 streams of two connections from both sides, every
 * byte checked. Side 0 has its memory behind pointers and sends header and payload apart; side 1 has it behind callbacks and sends whole
 * datagrams. */
#include <string.h>

#include "check.h"
#include "wire.h"

enum { CONNECTIONS = 2, STREAMS = 8, LANES = CONNECTIONS * STREAMS, OPERATIONS = 48 };
enum { SLAB = 16384, REGION = 4 * LANES * SLAB, FLIGHTS = 4096, DATAGRAM = 4200 };
#define BASE UINT64_C(0x500000000)
#define FIRST_PORT 49152u

/* A stream as one side uses it: one operation at a time. Its memory: what it sends (OUT), what the peer's operations touch (IN; the first
 * word is for atomics), what it reads (READ), where messages go (RX). */
enum { OUT, IN, READ, RX };

struct lane {
    mr_work work;
    uint64_t word;   /* The word of the peer's IN as it must be. */
    uint32_t posted;
    uint32_t sent, seen; /* Messages of this side, and of these those that the peer has seen. */
    int open;
};

struct side {
    mr_endpoint *endpoint;
    uint8_t *ram;
    mr_region region;
    uint32_t connection[CONNECTIONS];
    int connected, closed;
    uint32_t modified; /* Calls of the callback. */
    struct lane lanes[LANES];
};

static struct side sides[2];
static struct wire wire;
static uint64_t now_ns;
static int talking;

static uint8_t *slab(struct side *side, int lane, int which)
{
    return side->ram + ((size_t)lane * 4 + (size_t)which) * SLAB;
}

static mr_slice place(struct side *side, int lane, int which, uint32_t at, uint32_t length)
{
    mr_slice slice;
    memset(&slice, 0, sizeof slice);
    slice.region = side->region.index;
    slice.offset = (uint64_t)(slab(side, lane, which) - side->ram) + at;
    slice.length = length;
    return slice;
}

static int32_t store(void *context, uint16_t region, uint64_t offset, const uint8_t *bytes, size_t length)
{
    struct side *side = context;
    CHECK(region == side->region.index && offset + length <= REGION);
    memcpy(side->ram + offset, bytes, length);
    return 0;
}

static int32_t fetch(void *context, uint16_t region, uint64_t offset, uint8_t *bytes, size_t length)
{
    struct side *side = context;
    CHECK(region == side->region.index && offset + length <= REGION);
    memcpy(bytes, side->ram + offset, length);
    return 0;
}

static int32_t change(void *context, uint16_t region, uint64_t offset, uint8_t operation, uint64_t operand,
                      uint64_t swap, uint64_t *old)
{
    struct side *side = context;
    uint64_t word;
    CHECK(region == side->region.index && offset + 8 <= REGION);
    memcpy(&word, side->ram + offset, 8);
    *old = word;
    if (operation == MR_FETCH_ADD)
        word += operand;
    else if (word == operand)
        word = swap;
    memcpy(side->ram + offset, &word, 8);
    side->modified++;
    return 0;
}

static mr_address address_of(unsigned side)
{
    mr_address address;
    EXPECT(MR_OK, mr_address_ipv4(&address, 192, 0, 2, (uint8_t)(1 + side), 4793));
    return address;
}

static void *make(unsigned number)
{
    struct side *side = &sides[number];
    mr_endpoint_config config;
    mr_connection_config acceptor;
    mr_memory callbacks;
    uint8_t secret[32];
    size_t size = mr_endpoint_size(MR_PROFILE_LARGE, 3);
    void *memory = malloc(size + MR_ENDPOINT_ALIGNMENT);
    uintptr_t start = ((uintptr_t)memory + MR_ENDPOINT_ALIGNMENT - 1) & ~(uintptr_t)(MR_ENDPOINT_ALIGNMENT - 1);
    memset(side, 0, sizeof *side);
    side->ram = malloc(REGION);
    CHECK(memory != NULL && side->ram != NULL && size > 0);
    memset(side->ram, 0, REGION);
    EXPECT(MR_OK, mr_endpoint_config_default(&config));
    config.addresses[0] = address_of(number);
    config.listen = number == 1;
    EXPECT(MR_OK, mr_connection_config_default(&acceptor));
    acceptor.reorder_tolerance = 3;
    callbacks.context = side;
    callbacks.place = store;
    callbacks.gather = fetch;
    callbacks.modify = change;
    memset(secret, 17 + (int)number, sizeof secret);
    EXPECT(MR_OK, mr_endpoint_init((void *)start, size, MR_PROFILE_LARGE, 3, &config, &acceptor, secret,
                                   number == 1 ? &callbacks : NULL, &side->endpoint));
    EXPECT(MR_OK, mr_endpoint_register(side->endpoint, BASE, REGION, MR_ACCESS_ALL,
                                       number == 0 ? side->ram : NULL, &side->region));
    return memory;
}

/* The second connection's streams share a queue; the first's have their own. */
static void post_buffer(struct side *side, int lane, uint64_t id)
{
    mr_receive receive;
    memset(&receive, 0, sizeof receive);
    receive.id = id;
    receive.local = place(side, lane, RX, 0, SLAB);
    if (lane < STREAMS)
        EXPECT(MR_OK, mr_endpoint_post_receive(side->endpoint, side->connection[0], (uint16_t)lane, &receive));
    else
        EXPECT(MR_OK, mr_endpoint_post_shared_receive(side->endpoint, 0, &receive));
}

static void prepare(struct side *side)
{
    for (uint16_t stream = 0; stream < STREAMS; stream++)
        EXPECT(MR_OK, mr_endpoint_attach_shared_queue(side->endpoint, side->connection[1], stream, 0));
    for (int lane = 0; lane < LANES; lane++)
        post_buffer(side, lane, (uint64_t)lane);
}

static void post_next(unsigned number, int index)
{
    struct side *side = &sides[number], *peer = &sides[1 - number];
    struct lane *lane = &side->lanes[index];
    mr_work *work = &lane->work;
    uint32_t random = (uint32_t)wire_random(&wire), length = 1 + random % 12000, at = 64 + random % 4000;
    if (lane->posted == OPERATIONS)
        return;
    memset(work, 0, sizeof *work);
    work->id = (uint64_t)index << 32 | lane->posted;
    work->operation = (uint8_t)(lane->posted % 7);
    work->remote.key = peer->region.key;
    work->remote.address = BASE + place(peer, index, IN, at, 0).offset;
    work->immediate = random;
    switch (work->operation) {
    case MR_SEND:
        if (length % 2) { /* Every other one carries its bytes itself. */
            length = length % (MR_INLINE_BYTES + 1);
            work->flags = MR_WORK_INLINE;
            work->inline_data = slab(side, index, OUT) + at;
        }
        /* fall through */
    case MR_WRITE:
    case MR_WRITE_IMM:
    case MR_SEND_IMM:
        for (uint32_t i = 0; i < length; i++)
            slab(side, index, OUT)[at + i] = (uint8_t)(random * 31 + i * 7 + (i >> 8));
        work->local = place(side, index, OUT, at, length);
        if (work->operation == MR_SEND_IMM)
            work->flags = MR_WORK_SOLICITED;
        break;
    case MR_READ:
        work->local = place(side, index, READ, at, length);
        work->flags = MR_WORK_FENCE;
        break;
    default:
        work->local = place(side, index, READ, 0, 8);
        work->remote.address = BASE + place(peer, index, IN, 0, 0).offset;
        work->operand = random % 2 && work->operation == MR_COMPARE_SWAP ? lane->word : random;
        work->swap = UINT64_C(0x123456789abcdef) * random;
        break;
    }
    if (work->operation == MR_SEND || work->operation == MR_SEND_IMM || work->operation == MR_WRITE_IMM)
        lane->sent++;
    lane->open = 1;
    lane->posted++;
    EXPECT(MR_OK, mr_endpoint_post(side->endpoint, now_ns, side->connection[index / STREAMS],
                                   (uint16_t)(index % STREAMS), work));
}

/* An operation of this side is done: its bytes are where they belong. */
static void completed(unsigned number, const mr_completion *completion)
{
    struct side *side = &sides[number], *peer = &sides[1 - number];
    int index = (int)(completion->id >> 32);
    struct lane *lane = &side->lanes[index];
    const mr_work *work = &lane->work;
    const uint8_t *mine = side->ram + work->local.offset, *theirs = peer->ram + (work->remote.address - BASE);
    uint64_t old, word;
    CHECK(completion->status == MR_STATUS_SUCCESS && lane->open && completion->id == work->id);
    CHECK(completion->connection == side->connection[index / STREAMS]);
    CHECK(completion->stream == index % STREAMS && completion->length == work->local.length);
    lane->open = 0;
    switch (completion->kind) {
    case MR_COMPLETION_WRITE:
        CHECK(work->operation == MR_WRITE || work->operation == MR_WRITE_IMM);
        CHECK(memcmp(mine, theirs, work->local.length) == 0);
        CHECK(lane->seen == lane->sent);
        break;
    case MR_COMPLETION_READ:
        CHECK(work->operation == MR_READ);
        CHECK(memcmp(mine, theirs, work->local.length) == 0);
        break;
    case MR_COMPLETION_SEND:
        CHECK(work->operation == MR_SEND || work->operation == MR_SEND_IMM);
        CHECK(lane->seen == lane->sent);
        break;
    default:
        CHECK(completion->kind == (work->operation == MR_FETCH_ADD ? MR_COMPLETION_FETCH_ADD
                                                                   : MR_COMPLETION_COMPARE_SWAP));
        memcpy(&old, mine, 8);
        memcpy(&word, theirs, 8);
        CHECK(old == lane->word);
        if (work->operation == MR_FETCH_ADD)
            lane->word += work->operand;
        else if (lane->word == work->operand)
            lane->word = work->swap;
        CHECK(word == lane->word);
        break;
    }
    post_next(number, index);
}

/* A message of the peer used up a buffer of this side. */
static void received(unsigned number, const mr_completion *completion)
{
    struct side *side = &sides[number], *peer = &sides[1 - number];
    int index = completion->stream + (completion->connection == side->connection[1] ? STREAMS : 0);
    struct lane *lane = &peer->lanes[index];
    const mr_work *work = &lane->work;
    int buffer = (int)completion->id;
    CHECK(completion->status == MR_STATUS_SUCCESS && lane->open);
    CHECK(index >= STREAMS ? buffer >= STREAMS && buffer < LANES : buffer == index);
    CHECK(completion->length == work->local.length);
    CHECK(completion->has_immediate == (work->operation != MR_SEND));
    CHECK(!completion->has_immediate || completion->immediate == work->immediate);
    CHECK(completion->solicited == (work->operation == MR_SEND_IMM));
    if (completion->kind == MR_COMPLETION_RECEIVE) {
        CHECK(work->operation == MR_SEND || work->operation == MR_SEND_IMM);
        CHECK(memcmp(slab(side, buffer, RX), peer->ram + work->local.offset, work->local.length) == 0);
    } else {
        CHECK(completion->kind == MR_COMPLETION_RECEIVE_WRITE_IMM && work->operation == MR_WRITE_IMM);
    }
    lane->seen++;
    CHECK(lane->seen == lane->sent);
    post_buffer(side, buffer, completion->id);
}

static void happened(unsigned number, const mr_event *event)
{
    struct side *side = &sides[number];
    if (event->kind == MR_EVENT_CONNECTED) {
        CHECK(event->incoming == number && (!number || event->service < CONNECTIONS));
        if (number == 1)
            side->connection[event->service] = event->connection;
        side->connected++;
    } else if (event->kind == MR_EVENT_CLOSED) {
        if (number == 0 && event->connection == side->connection[1])
            CHECK(event->reason == MR_ABORTED_BY_PEER && event->code == 77);
        else
            CHECK(event->reason == (number == 0 ? MR_CLOSED_LOCALLY : event->connection == side->connection[0]
                                                                         ? MR_CLOSED_BY_PEER
                                                                         : MR_CLOSED_LOCALLY));
        side->closed++;
    } else {
        CHECK(event->kind == MR_EVENT_COMPLETION);
        if (!talking)
            CHECK(event->completion.status == MR_STATUS_FLUSHED); /* A buffer that was left over. */
        else if (event->completion.kind >= MR_COMPLETION_RECEIVE)
            received(number, &event->completion);
        else
            completed(number, &event->completion);
    }
}

/* Header and payload apart, as a device with scatter-gather does; the CRC32C over both. */
static int next_apart(struct side *side, uint8_t *bytes, mr_transmit *out)
{
    uint32_t crc = 0;
    size_t length;
    int32_t some = mr_endpoint_poll_transmit(side->endpoint, now_ns, bytes, DATAGRAM, out);
    CHECK(some >= 0);
    if (some == 0)
        return 0;
    length = out->header_length;
    if (out->has_payload) {
        CHECK(out->payload_bytes == side->ram + out->payload.offset);
        memcpy(bytes + length, out->payload_bytes, out->payload.length);
        length += out->payload.length;
    }
    if (out->trailer) {
        EXPECT(MR_OK, mr_crc32c(0, bytes, length, &crc));
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes[length++] = (uint8_t)(crc >> shift);
    }
    CHECK(length == out->length);
    return 1;
}

static void transmit(unsigned number)
{
    static uint8_t bytes[DATAGRAM];
    mr_transmit out;
    int32_t some;
    for (;;) {
        if (number == 0) {
            some = next_apart(&sides[0], bytes, &out);
        } else {
            some = mr_endpoint_poll_datagram(sides[1].endpoint, now_ns, bytes, sizeof bytes, &out);
            CHECK(some >= 0);
        }
        if (!some)
            return;
        CHECK(out.destination.port == 4793 && out.destination.ip[15] == 2 - number && out.plane == 0);
        CHECK(wire_send(&wire, now_ns, (uint8_t)(1 - number), 0, (uint16_t)(FIRST_PORT + out.entropy), bytes,
                        out.length));
    }
}

/* Everything that wants out goes out; then a datagram arrives, or time is up. */
static void step(void)
{
    uint32_t before;
    uint64_t next, at;
    const uint8_t *bytes;
    const struct flight *flight;
    do {
        mr_event event;
        before = wire.sent;
        for (unsigned number = 2; number-- > 0;) /* Receives of side 1 before completions of side 0. */
            while (mr_endpoint_poll_event(sides[number].endpoint, &event) == 1)
                happened(number, &event);
        transmit(0);
        transmit(1);
    } while (wire.sent != before);
    next = wire_next(&wire);
    for (unsigned number = 0; number < 2; number++)
        if (mr_endpoint_poll_timeout(sides[number].endpoint, &at) == 1 && at < next)
            next = at;
    if (next == UINT64_MAX)
        return;
    now_ns = next > now_ns ? next : now_ns;
    flight = wire_arrival(&wire, now_ns, &bytes);
    if (flight != NULL) {
        mr_receive_meta meta;
        memset(&meta, 0, sizeof meta);
        meta.source = address_of(1u - flight->to);
        meta.source.port = flight->source_port;
        meta.ecn = flight->number % 50 == 0 ? 3 : 2;
        CHECK(mr_endpoint_handle_datagram(sides[flight->to].endpoint, now_ns, &meta, bytes, flight->length,
                                          NULL) >= 0);
        return;
    }
    for (unsigned number = 0; number < 2; number++)
        EXPECT(MR_OK, mr_endpoint_handle_timeout(sides[number].endpoint, now_ns));
}

static int finished(void)
{
    for (unsigned number = 0; number < 2; number++)
        for (int lane = 0; lane < LANES; lane++)
            if (sides[number].lanes[lane].posted < OPERATIONS || sides[number].lanes[lane].open)
                return 0;
    return 1;
}

static void run(uint64_t seed, uint32_t loss, struct flight *flights, uint8_t *bytes)
{
    void *memory[2];
    mr_connection_config config;
    mr_connection_statistics statistics;
    mr_endpoint_statistics all;
    mr_path_statistics path;
    mr_agreed agreed;
    mr_address peer = address_of(1);
    uint64_t retransmissions = 0, paths_used = 0;
    now_ns = 1000;
    talking = 0;
    wire_init(&wire, seed, loss, flights, bytes, FLIGHTS, DATAGRAM);
    memory[0] = make(0);
    memory[1] = make(1);
    EXPECT(MR_OK, mr_connection_config_default(&config));
    config.paths = 64;
    config.reorder_tolerance = 3;
    for (config.service = 0; config.service < CONNECTIONS; config.service++)
        EXPECT(MR_OK, mr_endpoint_connect(sides[0].endpoint, now_ns, &peer, 1, &config,
                                          &sides[0].connection[config.service]));
    while (sides[0].connected + sides[1].connected < 2 * CONNECTIONS)
        step();
    for (unsigned number = 0; number < 2; number++)
        prepare(&sides[number]);
    EXPECT(MR_OK, mr_endpoint_announce(sides[0].endpoint, sides[0].connection[0]));
    talking = 1;
    for (unsigned number = 0; number < 2; number++)
        for (int lane = 0; lane < LANES; lane++)
            post_next(number, lane);
    while (!finished())
        step();
    talking = 0;

    EXPECT(MR_OK, mr_endpoint_agreed(sides[0].endpoint, sides[0].connection[0], &agreed));
    CHECK(agreed.paths == 64 && agreed.planes == 1 && agreed.streams == 32 && agreed.payload_bytes == 4096);
    for (int c = 0; c < CONNECTIONS; c++) {
        EXPECT(MR_OK, mr_endpoint_connection_statistics(sides[0].endpoint, sides[0].connection[c], &statistics));
        retransmissions += statistics.retransmissions;
        CHECK(statistics.open_messages == 0 && statistics.bytes_sent > 0 && statistics.bytes_received > 0);
        for (uint8_t p = 0; p < 64; p++) {
            EXPECT(MR_OK, mr_endpoint_path_statistics(sides[0].endpoint, sides[0].connection[c], p, &path));
            paths_used += path.packets_sent > 0;
        }
    }
    CHECK(loss == 0 || retransmissions > 0);
    CHECK(paths_used > 64 && sides[1].modified > 0 && sides[0].modified == 0);

    EXPECT(MR_OK, mr_endpoint_close(sides[0].endpoint, now_ns, sides[0].connection[0], MR_CLOSE_DRAIN, 0));
    EXPECT(MR_OK, mr_endpoint_close(sides[1].endpoint, now_ns, sides[1].connection[1], MR_CLOSE_ABORT, 77));
    while (sides[0].closed + sides[1].closed < 2 * CONNECTIONS)
        step();
    EXPECT(MR_OK, mr_endpoint_get_statistics(sides[0].endpoint, &all));
    CHECK(all.connections_opened == CONNECTIONS && all.datagrams_sent > 0);
    printf("pair: seed %lu, %lu %% lost: %d operations, %lu datagrams, %lu packets again, %lu us\n",
           (unsigned long)seed, (unsigned long)loss, 2 * LANES * OPERATIONS, (unsigned long)wire.sent,
           (unsigned long)retransmissions, (unsigned long)(now_ns / 1000));
    for (unsigned number = 0; number < 2; number++) {
        EXPECT(MR_OK, mr_endpoint_end(sides[number].endpoint));
        EXPECT(MR_ERROR_NOT_AN_OBJECT, mr_endpoint_end(sides[number].endpoint));
        free(sides[number].ram);
        free(memory[number]);
    }
}

int main(void)
{
    static const uint32_t losses[] = {0, 1, 5, 20};
    struct flight *flights = malloc(FLIGHTS * sizeof *flights);
    uint8_t *bytes = malloc((size_t)FLIGHTS * DATAGRAM);
    CHECK(flights != NULL && bytes != NULL);
    for (unsigned i = 0; i < sizeof losses / sizeof losses[0]; i++)
        run(i + 1, losses[i], flights, bytes);
    free(flights);
    free(bytes);
    return 0;
}
