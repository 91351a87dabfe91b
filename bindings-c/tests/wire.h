/* The wire of docs/conversation.md: loses, delays and so reorders, and hashes all that is sent. */
#ifndef WIRE_H
#define WIRE_H

#include <stddef.h>
#include <stdint.h>

struct flight {
    uint64_t arrives_ns;
    uint32_t number;
    uint16_t source_port;
    uint16_t length;
    uint8_t to;
    uint8_t plane;
    uint8_t used;
};

struct wire {
    uint64_t state;
    uint64_t hash;
    uint32_t loss_percent;
    uint8_t cut; /* Bit p: plane p carries nothing, in either direction. */
    uint32_t sent;
    uint32_t lost;
    /* Room for so many datagrams on their way, each of so many bytes. */
    struct flight *flights;
    uint8_t *bytes;
    size_t capacity;
    size_t datagram;
};

void wire_init(struct wire *wire, uint64_t seed, uint32_t loss_percent, struct flight *flights,
               uint8_t *bytes, size_t capacity, size_t datagram);
uint64_t wire_random(struct wire *wire);
/* Takes a datagram for side `to`. 0 if it has no room. (The hash says nothing of planes.) */
int wire_send(struct wire *wire, uint64_t now_ns, uint8_t to, uint8_t plane, uint16_t source_port,
              const uint8_t *bytes, size_t length);
/* When the next one arrives; UINT64_MAX: none is on its way. */
uint64_t wire_next(const struct wire *wire);
/* The first of those that have arrived, or NULL. Its place is free after the next wire_send. */
const struct flight *wire_arrival(struct wire *wire, uint64_t now_ns, const uint8_t **bytes);

#endif
