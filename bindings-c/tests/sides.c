#include "sides.h"

#include <string.h>

#define PORT 4793u
#define FIRST_PORT 49152u
enum { CONNECTIONS = 2, ENDPOINT_BYTES = 16384, FLIGHTS = 64, DATAGRAM = 512 };
/* No test takes a minute of virtual time: what always happens again until then has no end. */
#define TOO_LONG UINT64_C(60000000000)

struct side sides[2];
struct wire wire;
uint64_t now_ns;

static uint8_t memory[2][ENDPOINT_BYTES + MR_ENDPOINT_ALIGNMENT];
static struct flight flights[FLIGHTS];
static uint8_t flight_bytes[FLIGHTS * DATAGRAM];
static uint64_t started_ns;
static int connected;
static on_event *handle;

static mr_address address_of(unsigned side, unsigned plane)
{
    mr_address address;
    EXPECT(MR_OK, mr_address_ipv4(&address, 192, 0, (uint8_t)(2 + plane), (uint8_t)(1 + side), PORT));
    return address;
}

mr_connection_config sides_config(void)
{
    mr_connection_config config;
    EXPECT(MR_OK, mr_connection_config_default(&config));
    config.paths = PATHS;
    config.keep_alive_ns = 0;
    return config;
}

static void make(unsigned number, uint8_t planes, const mr_connection_config *acceptor)
{
    struct side *side = &sides[number];
    mr_endpoint_config config;
    uint8_t secret[32];
    uint8_t *start = memory[number];
    size_t size = mr_endpoint_size(MR_PROFILE_SMALL, CONNECTIONS);
    start += (MR_ENDPOINT_ALIGNMENT - (uintptr_t)start % MR_ENDPOINT_ALIGNMENT) % MR_ENDPOINT_ALIGNMENT;
    CHECK(size > 0 && size <= ENDPOINT_BYTES);
    memset(side, 0, sizeof *side);
    memset(side->ram, 0xee, RAM);
    memset(secret, 5 + (int)number, sizeof secret);
    EXPECT(MR_OK, mr_endpoint_config_default(&config));
    config.planes = planes;
    for (unsigned plane = 0; plane < planes; plane++)
        config.addresses[plane] = address_of(number, plane);
    config.plane_mbps = 1000;
    config.payload_bytes = PAYLOAD;
    config.listen = number == 1;
    EXPECT(MR_OK, mr_endpoint_init(start, size, MR_PROFILE_SMALL, CONNECTIONS, &config, acceptor, secret, NULL,
                                   &side->endpoint));
    EXPECT(MR_OK, mr_endpoint_register(side->endpoint, BASE, RAM, MR_ACCESS_ALL, side->ram, &side->region));
}

void sides_start(uint64_t seed, uint32_t loss_percent, uint8_t planes, const mr_connection_config *config,
                 on_event *handler)
{
    mr_address peer[MR_MAX_PLANES];
    wire_init(&wire, seed, loss_percent, flights, flight_bytes, FLIGHTS, DATAGRAM);
    now_ns = started_ns = 1000000;
    connected = 0;
    handle = handler;
    for (unsigned number = 0; number < 2; number++)
        make(number, planes, config);
    for (unsigned plane = 0; plane < planes; plane++)
        peer[plane] = address_of(1, plane);
    EXPECT(MR_OK, mr_endpoint_connect(sides[0].endpoint, now_ns, peer, planes, config, &sides[0].connection));
    while (connected < 2)
        CHECK(sides_step());
}

static void events(unsigned number)
{
    mr_event event;
    int32_t some;
    while ((some = mr_endpoint_poll_event(sides[number].endpoint, &event)) == 1) {
        if (event.kind != MR_EVENT_CONNECTED) {
            handle(number, &event);
            continue;
        }
        CHECK(event.incoming == number);
        sides[number].connection = event.connection;
        connected++;
    }
    EXPECT(0, some);
}

static void transmit(unsigned number)
{
    static uint8_t bytes[MR_HEADER_BUFFER];
    mr_transmit out;
    int32_t some;
    while ((some = mr_endpoint_poll_datagram(sides[number].endpoint, now_ns, bytes, sizeof bytes, &out)) == 1) {
        mr_address to = address_of(1 - number, out.plane);
        CHECK(memcmp(out.destination.ip, to.ip, sizeof to.ip) == 0 && out.destination.port == PORT);
        CHECK(wire_send(&wire, now_ns, (uint8_t)(1 - number), out.plane, (uint16_t)(FIRST_PORT + out.entropy), bytes,
                        out.length));
    }
    EXPECT(0, some);
}

/* What is to be said and told now; when something happens next. */
static uint64_t settle(void)
{
    uint32_t before;
    uint64_t next, at;
    do {
        before = wire.sent;
        for (unsigned number = 0; number < 2; number++)
            events(number);
        for (unsigned number = 0; number < 2; number++)
            transmit(number);
    } while (wire.sent != before);
    next = wire_next(&wire);
    for (unsigned number = 0; number < 2; number++)
        if (mr_endpoint_poll_timeout(sides[number].endpoint, &at) == 1 && at < next)
            next = at;
    return next;
}

static void advance(uint64_t next)
{
    const uint8_t *bytes;
    const struct flight *flight;
    now_ns = next > now_ns ? next : now_ns;
    CHECK(now_ns - started_ns < TOO_LONG);
    flight = wire_arrival(&wire, now_ns, &bytes);
    if (flight != NULL) {
        mr_receive_meta meta;
        memset(&meta, 0, sizeof meta);
        meta.source = address_of(1u - flight->to, flight->plane);
        meta.source.port = flight->source_port;
        meta.plane = flight->plane;
        meta.ecn = 2;
        CHECK(mr_endpoint_handle_datagram(sides[flight->to].endpoint, now_ns, &meta, bytes, flight->length, NULL) >=
              0);
    } else {
        for (unsigned number = 0; number < 2; number++)
            EXPECT(MR_OK, mr_endpoint_handle_timeout(sides[number].endpoint, now_ns));
    }
    settle();
}

int sides_step(void)
{
    uint64_t next = settle();
    if (next == UINT64_MAX)
        return 0;
    advance(next);
    return 1;
}

void sides_until(uint64_t at_ns)
{
    uint64_t next;
    while ((next = settle()) <= at_ns)
        advance(next);
    now_ns = at_ns > now_ns ? at_ns : now_ns;
}

void sides_idle(void)
{
    while (sides_step())
        continue;
}

void sides_end(void)
{
    for (unsigned number = 0; number < 2; number++)
        EXPECT(MR_OK, mr_endpoint_end(sides[number].endpoint));
}

mr_work sides_work(unsigned side, uint64_t id, uint8_t operation, uint32_t from, uint32_t length, uint32_t to)
{
    mr_work work;
    memset(&work, 0, sizeof work);
    work.id = id;
    work.operation = operation;
    work.local.region = sides[side].region.index;
    work.local.offset = from;
    work.local.length = length;
    work.remote.address = BASE + to;
    work.remote.key = sides[1 - side].region.key;
    return work;
}

int32_t sides_post(unsigned side, uint16_t stream, const mr_work *work)
{
    return mr_endpoint_post(sides[side].endpoint, now_ns, sides[side].connection, stream, work);
}

int32_t sides_post_receive(unsigned side, uint16_t stream, uint64_t id, uint32_t at, uint32_t length)
{
    mr_receive receive;
    memset(&receive, 0, sizeof receive);
    receive.id = id;
    receive.local.region = sides[side].region.index;
    receive.local.offset = at;
    receive.local.length = length;
    return mr_endpoint_post_receive(sides[side].endpoint, sides[side].connection, stream, &receive);
}
