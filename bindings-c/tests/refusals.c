/* Requests that the peer must refuse, each seen at both ends: its stream fails with the reason, there as the peer's fault; what waits behind it is
 * flushed; no byte has changed; the other stream goes on. */
#include <string.h>

#include "sides.h"

/* Whose key a request has. */
enum { ALL, READ_ONLY, WRITE_ONLY, GONE, WRONG };

struct request {
    const char *what;
    uint8_t operation;
    uint8_t key;
    uint32_t length;
    int64_t to; /* From the region's start. */
    uint8_t status;
};

enum { BUFFER = 300, LOCAL = 4096 };
static const struct request requests[] = {
    {"write with a wrong key", MR_WRITE, WRONG, 64, 0, MR_STATUS_REMOTE_INVALID_KEY},
    {"write_imm with a wrong key", MR_WRITE_IMM, WRONG, 600, 0, MR_STATUS_REMOTE_INVALID_KEY},
    {"read with a wrong key", MR_READ, WRONG, 64, 0, MR_STATUS_REMOTE_INVALID_KEY},
    {"atomic with a wrong key", MR_FETCH_ADD, WRONG, 8, 0, MR_STATUS_REMOTE_INVALID_KEY},
    {"write with the key of a region that is gone", MR_WRITE, GONE, 64, 0, MR_STATUS_REMOTE_INVALID_KEY},
    {"write over the end", MR_WRITE, ALL, 64, RAM - 63, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"write whose last packet is over the end", MR_WRITE, ALL, 3 * PAYLOAD, RAM - 3 * PAYLOAD + 1,
     MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"write behind the end", MR_WRITE, ALL, 1, RAM, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"write before the start", MR_WRITE, ALL, 64, -1, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"write over the end of all addresses", MR_WRITE, ALL, 64, -(int64_t)BASE - 8, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"read over the end", MR_READ, ALL, 2000, RAM - 1999, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"atomic behind the end", MR_COMPARE_SWAP, ALL, 8, RAM, MR_STATUS_REMOTE_OUT_OF_BOUNDS},
    {"write to what may be read", MR_WRITE, READ_ONLY, 64, 0, MR_STATUS_REMOTE_ACCESS_DENIED},
    {"read of what may be written", MR_READ, WRITE_ONLY, 64, 0, MR_STATUS_REMOTE_ACCESS_DENIED},
    {"atomic on what may be read", MR_FETCH_ADD, READ_ONLY, 8, 0, MR_STATUS_REMOTE_ACCESS_DENIED},
    {"atomic on what may be written", MR_COMPARE_SWAP, WRITE_ONLY, 8, 0, MR_STATUS_REMOTE_ACCESS_DENIED},
    {"send longer than its buffer", MR_SEND, ALL, BUFFER + 1, 0, MR_STATUS_LENGTH_EXCEEDS_BUFFER},
    {"send_imm of packets longer than its buffer", MR_SEND_IMM, ALL, 8 * BUFFER, 0,
     MR_STATUS_LENGTH_EXCEEDS_BUFFER},
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

static const struct request *request;
static unsigned ended[3], failed[2], flushed;

static void happened(unsigned side, const mr_event *event)
{
    const mr_completion *completion = &event->completion;
    if (event->kind == MR_EVENT_STREAM_FAILED) {
        CHECK(event->stream == 0 && event->status == request->status && event->by_peer == side);
        failed[side]++;
        return;
    }
    CHECK(event->kind == MR_EVENT_COMPLETION);
    if (side == 1) { /* The buffer is not used up, and given back. */
        CHECK(completion->kind == MR_COMPLETION_RECEIVE && completion->stream == 0 && completion->id == 9);
        CHECK(completion->status == MR_STATUS_FLUSHED ||
              completion->status == MR_STATUS_LENGTH_EXCEEDS_BUFFER);
        flushed++;
        return;
    }
    CHECK(completion->id < 3);
    ended[completion->id]++;
    CHECK(completion->status == (completion->id == 0   ? request->status
                                 : completion->id == 1 ? MR_STATUS_FLUSHED
                                                       : MR_STATUS_SUCCESS));
}

static void refused(uint64_t seed, uint32_t loss)
{
    static const uint8_t rights[3] = {MR_ACCESS_REMOTE_READ, MR_ACCESS_REMOTE_WRITE, MR_ACCESS_ALL};
    mr_connection_config config = sides_config();
    uint32_t keys[5];
    mr_region region;
    mr_work work;
    memset(ended, 0, sizeof ended);
    memset(failed, 0, sizeof failed);
    flushed = 0;
    sides_start(seed, loss, 1, &config, happened);
    keys[ALL] = sides[1].region.key;
    keys[WRONG] = keys[ALL] ^ 1u << 20;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT(MR_OK, mr_endpoint_register(sides[1].endpoint, BASE, RAM, rights[i], sides[1].ram, &region));
        keys[READ_ONLY + i] = region.key;
    }
    EXPECT(MR_OK, mr_endpoint_deregister(sides[1].endpoint, region.index));
    EXPECT(MR_OK, sides_post_receive(1, 0, 9, 0, BUFFER));
    memset(sides[0].ram, 0x11, LOCAL);
    work = sides_work(0, 0, request->operation, request->operation >= MR_READ ? LOCAL : 0, request->length, 0);
    work.remote.address += (uint64_t)request->to;
    work.remote.key = keys[request->key];
    work.operand = UINT64_C(0xeeeeeeeeeeeeeeee); /* It would be swapped. */
    EXPECT(MR_OK, sides_post(0, 0, &work));
    work = sides_work(0, 1, MR_WRITE, 0, 64, 512);
    EXPECT(MR_OK, sides_post(0, 0, &work));
    sides_idle();
    CHECK(ended[0] == 1 && ended[1] == 1 && failed[0] == 1 && failed[1] == 1 && flushed == 1);
    EXPECT(MR_ERROR_STREAM_FAILED, sides_post(0, 0, &work));
    EXPECT(MR_ERROR_STREAM_FAILED, sides_post_receive(1, 0, 9, 0, BUFFER));
    for (unsigned i = 0; i < RAM; i++)
        CHECK(sides[0].ram[i] == (i < LOCAL ? 0x11 : 0xee));
    for (unsigned i = 0; i < RAM; i++)
        CHECK(sides[1].ram[i] == 0xee || (i >= 512 && i < 512 + 64));
    work.id = 2;
    EXPECT(MR_OK, sides_post(0, 1, &work));
    sides_idle();
    CHECK(ended[2] == 1 && sides[1].ram[512] == 0x11);
    sides_end();
}

int main(void)
{
    static const uint32_t losses[] = {0, 5, 20};
    for (unsigned i = 0; i < REQUESTS; i++) {
        request = &requests[i];
        for (unsigned k = 0; k < sizeof losses / sizeof losses[0]; k++)
            refused(3 * i + k + 1, losses[k]);
        printf("refusals: %s\n", request->what);
    }
    return 0;
}
