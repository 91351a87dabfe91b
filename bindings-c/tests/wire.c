#include "wire.h"

#include <string.h>

void wire_init(struct wire *wire, uint64_t seed, uint32_t loss_percent, struct flight *flights,
               uint8_t *bytes, size_t capacity, size_t datagram)
{
    memset(wire, 0, sizeof *wire);
    memset(flights, 0, capacity * sizeof *flights);
    wire->state = seed;
    wire->hash = UINT64_C(0xcbf29ce484222325);
    wire->loss_percent = loss_percent;
    wire->flights = flights;
    wire->bytes = bytes;
    wire->capacity = capacity;
    wire->datagram = datagram;
}

/* SplitMix64 (Steele, Lea, Flood, 2014). */
uint64_t wire_random(struct wire *wire)
{
    uint64_t z = wire->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* FNV-1a, 64 bits. */
static void digest(struct wire *wire, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        wire->hash = (wire->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static void digest_number(struct wire *wire, uint64_t number, unsigned length)
{
    for (unsigned i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)(number >> (8 * i));
        digest(wire, &byte, 1);
    }
}

int wire_send(struct wire *wire, uint64_t now_ns, uint8_t to, uint8_t plane, uint16_t source_port,
              const uint8_t *bytes, size_t length)
{
    digest_number(wire, to, 1);
    digest_number(wire, now_ns, 8);
    digest_number(wire, source_port, 2);
    digest(wire, bytes, length);
    uint32_t number = wire->sent++;
    uint64_t random = wire_random(wire);
    if (random % 100 < wire->loss_percent || wire->cut >> plane & 1) {
        wire->lost++;
        return 1;
    }
    for (size_t i = 0; i < wire->capacity; i++) {
        struct flight *flight = &wire->flights[i];
        if (flight->used)
            continue;
        if (length > wire->datagram)
            return 0;
        flight->arrives_ns = now_ns + 5000 + (random >> 32) % 10000;
        flight->number = number;
        flight->source_port = source_port;
        flight->length = (uint16_t)length;
        flight->to = to;
        flight->plane = plane;
        flight->used = 1;
        memcpy(wire->bytes + i * wire->datagram, bytes, length);
        return 1;
    }
    return 0;
}

static const struct flight *first(const struct wire *wire)
{
    const struct flight *found = NULL;
    for (size_t i = 0; i < wire->capacity; i++) {
        const struct flight *flight = &wire->flights[i];
        if (!flight->used)
            continue;
        if (found == NULL || flight->arrives_ns < found->arrives_ns ||
            (flight->arrives_ns == found->arrives_ns && flight->number < found->number))
            found = flight;
    }
    return found;
}

uint64_t wire_next(const struct wire *wire)
{
    const struct flight *flight = first(wire);
    return flight == NULL ? UINT64_MAX : flight->arrives_ns;
}

const struct flight *wire_arrival(struct wire *wire, uint64_t now_ns, const uint8_t **bytes)
{
    const struct flight *flight = first(wire);
    if (flight == NULL || flight->arrives_ns > now_ns)
        return NULL;
    size_t index = (size_t)(flight - wire->flights);
    wire->flights[index].used = 0;
    *bytes = wire->bytes + index * wire->datagram;
    return flight;
}
