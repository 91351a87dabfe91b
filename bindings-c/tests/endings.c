/* Connections that end with work outstanding, at any moment and in every way: each operation and each buffer of both sides is reported once, before
 * the end is; what is reported as done is done. */
#include <string.h>

#include "sides.h"

enum way { PEER_ABORTS, SIDE_ABORTS, BOTH_ABORT, WIRE_CUT, PEER_DRAINS, WAYS };
static const char *const names[WAYS] = {"aborted by one", "aborted by the other", "aborted by both", "cut off",
                                        "drained"};

enum { CODE = 700, MOST = 4096, BLOCK = 1500, INBOX = 4096, ROOM = 8192 };
static struct {
    uint32_t posted, ended, succeeded; /* Operations; their ids count up. */
    uint32_t sends;                    /* Of those that succeeded. */
    uint32_t buffers, used;
    uint8_t seen[MOST], buffer_seen[MOST];
    int closed;
    uint8_t reason;
    uint16_t code;
} ends[2];
static uint32_t arrived[2]; /* Messages that were reported to have arrived at a side. */
static enum way way;
static int over;

static uint8_t pattern(unsigned side, uint64_t id, uint32_t i)
{
    return (uint8_t)(side * 101 + id * 31 + i * 7 + (i >> 8));
}

/* Stream 0: writes and messages in turn; stream 1: reads. One of each at a time, so that nothing else changes their bytes. */
static void post_next(unsigned side, uint16_t stream)
{
    uint32_t id = ends[side].posted, at = stream * BLOCK;
    uint8_t operation = stream == 1 ? MR_READ : id % 2 ? MR_SEND : MR_WRITE;
    mr_work work = sides_work(side, id, operation, at, BLOCK, INBOX);
    CHECK(id < MOST);
    if (stream == 0)
        for (uint32_t i = 0; i < BLOCK; i++)
            sides[side].ram[at + i] = pattern(side, id, i);
    EXPECT(MR_OK, sides_post(side, stream, &work));
    ends[side].posted++;
}

static void post_buffer(unsigned side)
{
    EXPECT(MR_OK, sides_post_receive(side, 0, ends[side].buffers++, ROOM, BLOCK));
}

static int ending_status(uint8_t status)
{
    return status == MR_STATUS_FLUSHED || (way == WIRE_CUT && status == MR_STATUS_CONNECTION_LOST);
}

static void completed(unsigned side, const mr_completion *completion)
{
    int success = completion->status == MR_STATUS_SUCCESS;
    CHECK(success || (over && ending_status(completion->status)));
    if (completion->kind == MR_COMPLETION_RECEIVE) {
        CHECK(completion->id < ends[side].buffers && !ends[side].buffer_seen[completion->id]++);
        ends[side].used++;
        arrived[side] += (unsigned)success;
        if (success && !over)
            post_buffer(side);
        return;
    }
    CHECK(completion->id < ends[side].posted && !ends[side].seen[completion->id]++);
    ends[side].ended++;
    ends[side].succeeded += (unsigned)success;
    if (success && completion->kind == MR_COMPLETION_WRITE)
        for (uint32_t i = 0; i < BLOCK; i++)
            CHECK(sides[1 - side].ram[INBOX + i] == pattern(side, completion->id, i));
    ends[side].sends += success && completion->kind == MR_COMPLETION_SEND;
    CHECK(ends[side].sends <= arrived[1 - side]);
    if (!over)
        post_next(side, completion->stream);
}

static void happened(unsigned side, const mr_event *event)
{
    CHECK(!ends[side].closed); /* It was the last. */
    if (event->kind == MR_EVENT_COMPLETION) {
        completed(side, &event->completion);
    } else if (event->kind == MR_EVENT_CLOSED) {
        ends[side].closed = 1;
        ends[side].reason = event->reason;
        ends[side].code = event->code;
        CHECK(ends[side].ended == ends[side].posted && ends[side].used == ends[side].buffers);
    } else {
        CHECK(over && (event->kind == MR_EVENT_PLANE_DOWN || event->kind == MR_EVENT_STREAM_FAILED));
    }
}

static void close_by(unsigned side, uint8_t mode)
{
    EXPECT(MR_OK, mr_endpoint_close(sides[side].endpoint, now_ns, sides[side].connection, mode,
                                    (uint16_t)(CODE + side)));
}

static void check_reasons(void)
{
    uint8_t reasons[2] = {ends[0].reason, ends[1].reason};
    for (unsigned side = 0; side < 2; side++) {
        unsigned closer = way == SIDE_ABORTS ? 0 : 1;
        if (way == WIRE_CUT)
            CHECK(reasons[side] == MR_UNREACHABLE);
        else if (way == BOTH_ABORT)
            CHECK(reasons[side] == MR_CLOSED_LOCALLY);
        else if (side == closer)
            CHECK(reasons[side] == MR_CLOSED_LOCALLY);
        else if (way == PEER_DRAINS)
            CHECK(reasons[side] == MR_CLOSED_BY_PEER);
        else
            CHECK(reasons[side] == MR_ABORTED_BY_PEER && ends[side].code == CODE + closer);
    }
}

static uint32_t total, open_at_end;

static void run(uint64_t seed, uint32_t loss)
{
    mr_connection_config config = sides_config();
    mr_work work;
    config.rnr_attempts = 255;
    memset(ends, 0, sizeof ends);
    memset(arrived, 0, sizeof arrived);
    over = 0;
    sides_start(seed, loss, 1, &config, happened);
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < BUFFERS; i++)
            post_buffer(side);
        for (uint16_t stream = 0; stream < STREAMS; stream++)
            post_next(side, stream);
    }
    sides_until(now_ns + wire_random(&wire) % 500000);
    over = 1;
    for (unsigned side = 0; side < 2; side++) {
        total += ends[side].posted;
        open_at_end += ends[side].posted - ends[side].ended;
        CHECK(ends[side].posted - ends[side].ended == OPEN && ends[side].buffers - ends[side].used == BUFFERS);
    }
    if (way == PEER_ABORTS || way == BOTH_ABORT)
        close_by(1, MR_CLOSE_ABORT);
    if (way == SIDE_ABORTS || way == BOTH_ABORT)
        close_by(0, MR_CLOSE_ABORT);
    if (way == WIRE_CUT)
        wire.cut = 1;
    if (way == PEER_DRAINS)
        close_by(1, MR_CLOSE_DRAIN);
    while (!ends[0].closed || !ends[1].closed)
        CHECK(sides_step());
    sides_idle();
    check_reasons();
    for (unsigned side = 0; side < 2; side++) {
        CHECK(ends[side].ended == ends[side].posted && ends[side].used == ends[side].buffers);
        if (way == PEER_DRAINS)
            CHECK(ends[side].succeeded == ends[side].posted);
        work = sides_work(side, 0, MR_WRITE, 0, 1, 0);
        EXPECT(MR_ERROR_UNKNOWN_CONNECTION, sides_post(side, 0, &work));
        EXPECT(MR_ERROR_UNKNOWN_CONNECTION, sides_post_receive(side, 0, 0, 0, 1));
    }
    sides_end();
}

int main(void)
{
    static const uint32_t losses[] = {0, 2, 10};
    uint64_t seed = 1;
    for (unsigned i = 0; i < WAYS; i++) {
        way = (enum way)i;
        total = open_at_end = 0;
        for (unsigned k = 0; k < 30; k++)
            run(seed++, losses[k % 3]);
        printf("endings: 30 connections %s: %lu operations, %lu of them open then\n", names[i], (unsigned long)total,
               (unsigned long)open_at_end);
    }
    return 0;
}
