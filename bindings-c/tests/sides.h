/* Two connected endpoints of the small profile and the wire between them, in virtual time. What happens is told to the test. */
#ifndef SIDES_H
#define SIDES_H

#include "check.h"
#include "wire.h"

/* OPEN operations of a connection, BUFFERS of an endpoint. */
enum { RAM = 16384, PAYLOAD = 256, PATHS = 4, STREAMS = 2, OPEN = 2, BUFFERS = 8 };
/* What a peer calls the first byte of a side's RAM. */
#define BASE UINT64_C(0x10000)

struct side {
    mr_endpoint *endpoint;
    mr_region region; /* All of its RAM, with all rights. */
    uint32_t connection;
    uint8_t ram[RAM];
};

/* Side 0 asked for the connection. */
extern struct side sides[2];
extern struct wire wire;
extern uint64_t now_ns;

/* Is told of every event but of connections made, in the order of each side. */
typedef void on_event(unsigned side, const mr_event *event);

/* Settings of connections that the tests begin with: PATHS paths, nothing is sent while nothing is to be done. */
mr_connection_config sides_config(void);
/* Makes and connects both. They have RAM full of 0xee. */
void sides_start(uint64_t seed, uint32_t loss_percent, uint8_t planes, const mr_connection_config *config,
                 on_event *handler);
/* One datagram arrives, or timers fire, and all that follows at once. 0: nothing will ever happen by itself. */
int sides_step(void);
/* As many steps as there are until a time, which it is then. */
void sides_until(uint64_t at_ns);
/* As many steps as there are. */
void sides_idle(void);
/* Gives the endpoints back. */
void sides_end(void);

/* An operation of a side on `length` bytes of its RAM at `from` and the peer's at `to`. */
mr_work sides_work(unsigned side, uint64_t id, uint8_t operation, uint32_t from, uint32_t length, uint32_t to);
int32_t sides_post(unsigned side, uint16_t stream, const mr_work *work);
int32_t sides_post_receive(unsigned side, uint16_t stream, uint64_t id, uint32_t at, uint32_t length);

#endif
