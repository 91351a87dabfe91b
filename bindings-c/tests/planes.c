/* Two planes of which one is cut while words are counted and messages are under way, and mended later: every byte arrives, nothing is done twice,
 * and both sides are told of the plane. */
#include <string.h>

#include "sides.h"

enum { ROUNDS = 40, BLOCK = 2000, COUNTER = 16376 };
#define CUT 1 /* The plane. */

static uint32_t posted[STREAMS], completed[STREAMS], received, buffers, limit;
static unsigned downs[2], ups[2];

static uint8_t pattern(uint32_t k, uint32_t i)
{
    return (uint8_t)(k * 59 + i * 7 + (i >> 8));
}

/* Stream 0: messages with a number, one after the other; stream 1: a word that counts its operations, so that one more shows. */
static void post_next(uint16_t stream)
{
    uint32_t k = posted[stream];
    mr_work work;
    if (k == limit)
        return;
    posted[stream]++;
    if (stream == 0) {
        uint32_t at = k % 2 * BLOCK;
        work = sides_work(0, k, k % 2 ? MR_SEND_IMM : MR_WRITE_IMM, at, BLOCK - k % 300, at);
        for (uint32_t i = 0; i < BLOCK; i++)
            sides[0].ram[at + i] = pattern(k, i);
        work.immediate = k;
    } else {
        work = sides_work(0, k, MR_FETCH_ADD, 8192 + k % 2 * 8, 8, COUNTER);
        work.operand = 1;
    }
    EXPECT(MR_OK, sides_post(0, stream, &work));
}

static void post_buffer(void)
{
    EXPECT(MR_OK, sides_post_receive(1, 0, buffers, 4096 + buffers % 4 * BLOCK, BLOCK));
    buffers++;
}

static void arrived(const mr_completion *completion)
{
    uint32_t k = received++, length = BLOCK - k % 300;
    const uint8_t *place = sides[1].ram + (k % 2 ? 4096 + k % 4 * BLOCK : k % 2 * BLOCK);
    CHECK(completion->id == k && completion->has_immediate && completion->immediate == k);
    CHECK(completion->length == length);
    for (uint32_t i = 0; i < length; i++)
        CHECK(place[i] == pattern(k, i));
    post_buffer();
}

static void happened(unsigned side, const mr_event *event)
{
    uint16_t stream = event->completion.stream;
    uint64_t word;
    if (event->kind == MR_EVENT_PLANE_DOWN || event->kind == MR_EVENT_PLANE_UP) {
        CHECK(event->plane == CUT);
        *(event->kind == MR_EVENT_PLANE_DOWN ? &downs[side] : &ups[side]) += 1;
        return;
    }
    CHECK(event->kind == MR_EVENT_COMPLETION && event->completion.status == MR_STATUS_SUCCESS);
    if (side == 1) {
        arrived(&event->completion);
        return;
    }
    CHECK(event->completion.id == completed[stream]);
    if (stream == 1) {
        memcpy(&word, sides[0].ram + 8192 + completed[1] % 2 * 8, 8);
        CHECK(word == completed[1]);
    }
    completed[stream]++;
    post_next(stream);
}

/* So many more of each; all of them are done in the end. */
static void more(uint32_t rounds)
{
    limit += rounds;
    for (uint16_t stream = 0; stream < STREAMS; stream++)
        post_next(stream);
    while (completed[0] < limit || completed[1] < limit || received < limit)
        CHECK(sides_step());
}

/* Bytes that side 0 sent by a plane. */
static uint64_t sent_by(uint8_t plane)
{
    mr_path_statistics path;
    uint64_t bytes = 0;
    for (uint8_t number = 0; number < PATHS; number++) {
        EXPECT(MR_OK, mr_endpoint_path_statistics(sides[0].endpoint, sides[0].connection, number, &path));
        bytes += path.plane == plane ? path.bytes_sent : 0;
    }
    return bytes;
}

static void run(uint64_t seed, uint32_t loss)
{
    mr_connection_config config = sides_config();
    uint64_t word = 0, cut_bytes, other_bytes;
    memset(posted, 0, sizeof posted);
    memset(completed, 0, sizeof completed);
    memset(downs, 0, sizeof downs);
    memset(ups, 0, sizeof ups);
    received = buffers = limit = 0;
    sides_start(seed, loss, 2, &config, happened);
    memcpy(sides[1].ram + COUNTER, &word, 8);
    for (unsigned i = 0; i < 4; i++)
        post_buffer();
    more(ROUNDS);
    CHECK(sent_by(CUT) > 0 && sent_by(1 - CUT) > 0 && downs[0] == 0 && downs[1] == 0);

    wire.cut = 1 << CUT;
    more(ROUNDS);
    CHECK(downs[0] == 1 && downs[1] == 1 && ups[0] == 0 && ups[1] == 0);
    cut_bytes = sent_by(CUT);
    other_bytes = sent_by(1 - CUT);
    more(ROUNDS);
    /* What is known to be cut carries no data. */
    CHECK(sent_by(CUT) == cut_bytes && sent_by(1 - CUT) > other_bytes);

    wire.cut = 0;
    while (ups[0] == 0 || ups[1] == 0)
        CHECK(sides_step());
    more(ROUNDS);
    CHECK(sent_by(CUT) > cut_bytes);
    sides_idle();
    CHECK(received == limit && completed[0] == limit && completed[1] == limit);
    memcpy(&word, sides[1].ram + COUNTER, 8);
    CHECK(word == limit);
    CHECK(downs[0] == 1 && downs[1] == 1 && ups[0] == 1 && ups[1] == 1);
    printf("planes: seed %lu, %lu %% lost: %lu messages and as many atomics, over at %lu us\n", (unsigned long)seed,
           (unsigned long)loss, (unsigned long)limit, (unsigned long)(now_ns / 1000));
    sides_end();
}

int main(void)
{
    static const uint32_t losses[] = {0, 1, 5};
    for (unsigned i = 0; i < sizeof losses / sizeof losses[0]; i++)
        run(i + 1, losses[i]);
    return 0;
}
