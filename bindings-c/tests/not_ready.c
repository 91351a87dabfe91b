/* Messages for which no buffer is posted yet: each goes to the buffer that is posted later, once and in order, and its sender is not told that
 * it was delivered before it is; if attempts are limited and no buffer comes, the sender is told, and the other stream goes on. */
#include <string.h>

#include "sides.h"

enum { MESSAGES = 48, SLOT = 1408, SLOTS = 8, TARGETS = SLOT * SLOTS, TARGET = 1024 };
#define PAUSE 2000000u /* Many attempts, 100 us apart. */

static uint32_t sent, completed, posted, received;
static int all_at_once;

static uint8_t operation_of(uint32_t k)
{
    static const uint8_t operations[4] = {MR_SEND_IMM, MR_WRITE_IMM, MR_SEND, MR_SEND_IMM};
    return operations[k % 4];
}

/* Some are empty, some have several packets. */
static uint32_t length_of(uint32_t k)
{
    return k % 6 == 0 ? 0 : 1 + k * 397 % (operation_of(k) == MR_WRITE_IMM ? TARGET : SLOT);
}

static uint32_t target_of(uint32_t k)
{
    return TARGETS + k / 4 % 4 * TARGET;
}

static uint8_t pattern(uint32_t k, uint32_t i)
{
    return (uint8_t)(k * 31 + i * 7 + (i >> 8));
}

static void post_next(void)
{
    uint32_t k = sent, at = k % 8 * SLOT;
    mr_work work = sides_work(0, k, operation_of(k), at, length_of(k), target_of(k));
    if (k == MESSAGES)
        return;
    for (uint32_t i = 0; i < work.local.length; i++)
        sides[0].ram[at + i] = pattern(k, i);
    work.immediate = ~k;
    EXPECT(MR_OK, sides_post(0, 0, &work));
    sent++;
}

static void post_buffer(void)
{
    uint32_t at = posted % SLOTS * SLOT;
    memset(sides[1].ram + at, 0xdd, SLOT);
    EXPECT(MR_OK, sides_post_receive(1, 0, posted++, at, SLOT));
}

static void arrived(const mr_completion *completion)
{
    uint32_t k = received++, length = length_of(k), at = k % SLOTS * SLOT;
    uint8_t operation = operation_of(k);
    const uint8_t *place = sides[1].ram + (operation == MR_WRITE_IMM ? target_of(k) : at);
    CHECK(completion->id == k && k < posted && completion->length == length);
    CHECK(completion->kind ==
          (operation == MR_WRITE_IMM ? MR_COMPLETION_RECEIVE_WRITE_IMM : MR_COMPLETION_RECEIVE));
    CHECK(completion->has_immediate == (operation != MR_SEND));
    CHECK(!completion->has_immediate || completion->immediate == ~k);
    for (uint32_t i = 0; i < length; i++)
        CHECK(place[i] == pattern(k, i));
    for (uint32_t i = operation == MR_WRITE_IMM ? 0 : length; i < SLOT; i++)
        CHECK(sides[1].ram[at + i] == 0xdd);
}

static void happened(unsigned side, const mr_event *event)
{
    CHECK(event->kind == MR_EVENT_COMPLETION && event->completion.status == MR_STATUS_SUCCESS);
    if (side == 1) {
        arrived(&event->completion);
        return;
    }
    CHECK(event->completion.id == completed);
    /* A write needs its buffer only to be reported. */
    CHECK(completed < received || operation_of(completed) == MR_WRITE_IMM);
    completed++;
    post_next();
}

static void delivered(uint64_t seed, uint32_t loss)
{
    mr_connection_config config = sides_config();
    mr_connection_statistics statistics;
    config.rnr_attempts = 255;
    sent = completed = posted = received = 0;
    sides_start(seed, loss, 1, &config, happened);
    for (unsigned i = 0; i < OPEN; i++)
        post_next();
    sides_until(now_ns + PAUSE);
    CHECK(completed == 0 && received == 0);
    while (posted < MESSAGES) {
        for (unsigned some = all_at_once ? SLOTS : (unsigned)(wire_random(&wire) % 3); some > 0; some--)
            if (posted < MESSAGES && posted - received < SLOTS)
                post_buffer();
        sides_until(now_ns + wire_random(&wire) % PAUSE);
    }
    sides_idle();
    CHECK(sent == MESSAGES && completed == MESSAGES && received == MESSAGES);
    EXPECT(MR_OK, mr_endpoint_connection_statistics(sides[1].endpoint, sides[1].connection, &statistics));
    CHECK(statistics.rnr_sent > 0 && statistics.open_messages == 0);
    printf("not_ready: seed %lu, %lu %% lost: %u messages, %lu refusals\n", (unsigned long)seed, (unsigned long)loss,
           (unsigned)MESSAGES, (unsigned long)statistics.rnr_sent);
    sides_end();
}

/* What became of two SENDs without a buffer and of one to the other stream, which has one; and of the streams. */
static unsigned failed[2], succeeded[2];
static uint8_t status_of[OPEN];
static void gave_up(unsigned side, const mr_event *event)
{
    if (event->kind == MR_EVENT_STREAM_FAILED) {
        /* The receiver is told that the sender gave up, not that it did anything wrong. */
        CHECK(event->stream == 0 && event->by_peer == 0);
        CHECK(event->status == (side == 0 ? MR_STATUS_RECEIVER_NOT_READY : MR_STATUS_FLUSHED));
        failed[side]++;
        return;
    }
    CHECK(event->kind == MR_EVENT_COMPLETION);
    if (event->completion.stream == 1) {
        CHECK(event->completion.status == MR_STATUS_SUCCESS);
        succeeded[side]++;
        return;
    }
    CHECK(side == 0 && event->completion.id < OPEN && status_of[event->completion.id] == 255);
    status_of[event->completion.id] = event->completion.status;
}

static void limited(uint8_t attempts)
{
    mr_connection_config config = sides_config();
    mr_connection_statistics statistics;
    mr_work work;
    config.rnr_attempts = attempts;
    memset(failed, 0, sizeof failed);
    memset(succeeded, 0, sizeof succeeded);
    memset(status_of, 255, sizeof status_of);
    sides_start(1, 0, 1, &config, gave_up);
    work = sides_work(0, 0, MR_SEND, 0, 600, 0);
    for (work.id = 0; work.id < OPEN; work.id++)
        EXPECT(MR_OK, sides_post(0, 0, &work));
    sides_idle();
    CHECK(status_of[0] == MR_STATUS_RECEIVER_NOT_READY && status_of[1] == MR_STATUS_FLUSHED);
    CHECK(failed[0] == 1 && failed[1] == 1);
    EXPECT(MR_ERROR_STREAM_FAILED, sides_post(0, 0, &work));
    EXPECT(MR_OK, mr_endpoint_connection_statistics(sides[1].endpoint, sides[1].connection, &statistics));
    CHECK(statistics.rnr_sent == OPEN * (attempts + 1u));
    EXPECT(MR_OK, sides_post_receive(1, 1, 9, 0, 600));
    EXPECT(MR_OK, sides_post(0, 1, &work));
    sides_idle();
    CHECK(succeeded[0] == 1 && succeeded[1] == 1);
    sides_end();
}

int main(void)
{
    static const uint32_t losses[] = {0, 1, 5, 20};
    for (unsigned i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        delivered(2 * i + 1, losses[i]);
        all_at_once = 1;
        delivered(2 * i + 2, losses[i]);
        all_at_once = 0;
    }
    limited(0);
    limited(3);
    printf("not_ready: attempts that are limited end\n");
    return 0;
}
