/* NICs in an event loop, on a network that misbehaves: one has a thread and wakes the loop by its completions, one has none and does by its
 * datagrams. Nothing looks for work again and again: whoever is not woken waits for ever. */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "nics.h"

enum { MESSAGES = 200, SIZE = 12000, AHEAD = 8 };

static uint8_t out[AHEAD][SIZE], in[AHEAD][SIZE];
static mr_nic *server, *client;
static mr_region out_region, in_region;
static uint32_t connection, incoming;
static uint32_t posted, buffers;

static int readable(int descriptor, int timeout_ms)
{
    struct pollfd watched;
    watched.fd = descriptor;
    watched.events = POLLIN;
    return poll(&watched, 1, timeout_ms) == 1;
}

static void post_buffer(void)
{
    mr_receive receive;
    memset(&receive, 0, sizeof receive);
    receive.id = buffers++;
    receive.local.region = in_region.index;
    receive.local.offset = receive.id % AHEAD * SIZE;
    receive.local.length = SIZE;
    EXPECT(MR_OK, mr_nic_post_receive(server, incoming, 0, &receive));
}

static uint32_t length_of(uint32_t k)
{
    return SIZE - k % 1000;
}

static void post_message(uint8_t flags)
{
    mr_work work;
    memset(&work, 0, sizeof work);
    work.id = posted++;
    work.operation = MR_SEND;
    work.flags = flags;
    work.local.region = out_region.index;
    work.local.offset = work.id % AHEAD * SIZE;
    work.local.length = length_of((uint32_t)work.id);
    for (uint32_t i = 0; i < work.local.length; i++)
        out[work.id % AHEAD][i] = (uint8_t)(work.id * 31 + i * 7 + (i >> 8));
    EXPECT(MR_OK, mr_nic_post(client, connection, 0, &work));
}

static void check_message(const mr_completion *completion, uint32_t k)
{
    CHECK(completion->kind == MR_COMPLETION_RECEIVE && completion->status == MR_STATUS_SUCCESS);
    CHECK(completion->id == k && completion->length == length_of(k));
    for (uint32_t i = 0; i < completion->length; i++)
        CHECK(in[k % AHEAD][i] == (uint8_t)(k * 31 + i * 7 + (i >> 8)));
}

/* What there is to be taken. Returns whether there was anything. */
static int take(uint32_t *received, uint32_t *sent)
{
    mr_completion completion;
    int some = 0;
    while (mr_nic_poll(server, 0, &completion, 1) == 1) {
        check_message(&completion, (*received)++);
        post_buffer();
        some = 1;
    }
    while (mr_nic_poll(client, 0, &completion, 1) == 1) {
        CHECK(completion.kind == MR_COMPLETION_SEND && completion.status == MR_STATUS_SUCCESS);
        CHECK(completion.id == *sent);
        ++*sent;
        if (posted < MESSAGES)
            post_message(0);
        some = 1;
    }
    return some;
}

/* All messages, by one loop that sleeps. */
static void loop(void)
{
    struct pollfd watched[2];
    uint32_t received = 0, sent = 0;
    uint64_t most;
    int32_t descriptor = -1;
    memset(watched, 0, sizeof watched);
    EXPECT(MR_ERROR_BUFFER_TOO_SMALL, mr_nic_descriptors(client, &descriptor, 0));
    EXPECT(1, mr_nic_descriptors(client, &descriptor, 1));
    CHECK(descriptor >= 0);
    watched[0].fd = descriptor;
    watched[1].fd = mr_nic_queue_descriptor(server, 0);
    watched[0].events = watched[1].events = POLLIN;
    for (unsigned i = 0; i < AHEAD; i++) {
        post_buffer();
        post_message(0);
    }
    while (received < MESSAGES || sent < MESSAGES) {
        int timeout = -1;
        EXPECT(MR_OK, mr_nic_prepare_sleep(client, &most));
        if (take(&received, &sent) || mr_nic_arm(server, 0, 0) == 0)
            continue;
        if (most != MR_FOREVER)
            timeout = most / 1000000 < INT_MAX ? (int)(most / 1000000) + 1 : INT_MAX;
        CHECK(poll(watched, 2, timeout) >= 0);
        if (watched[1].revents & POLLIN)
            EXPECT(MR_OK, mr_nic_disarm(server, 0));
    }
    CHECK(posted == MESSAGES && buffers == MESSAGES + AHEAD);
    EXPECT(MR_OK, mr_nic_disarm(server, 0));
}

/* When exactly the descriptor of completions is readable. */
static void waking(void)
{
    mr_completion completion;
    int descriptor = mr_nic_queue_descriptor(server, 0);
    CHECK(descriptor >= 0 && !readable(descriptor, 0));
    EXPECT(1, mr_nic_arm(server, 0, 0));
    post_message(0);
    EXPECT(MR_OK, mr_nic_wait(client, 0, MR_FOREVER, &completion));
    CHECK(readable(descriptor, -1) && readable(descriptor, 0));
    EXPECT(MR_OK, mr_nic_disarm(server, 0));
    CHECK(!readable(descriptor, 0));
    EXPECT(0, mr_nic_arm(server, 0, 0)); /* It waits to be taken. */
    EXPECT(MR_OK, mr_nic_disarm(server, 0));
    EXPECT(MR_OK, mr_nic_wait(server, 0, MR_FOREVER, &completion));
    check_message(&completion, MESSAGES);
    /* Only for what the peer wants it. */
    EXPECT(1, mr_nic_arm(server, 0, 1));
    post_message(0);
    EXPECT(MR_OK, mr_nic_wait(client, 0, MR_FOREVER, &completion));
    EXPECT(MR_OK, mr_nic_wait(server, 0, MR_FOREVER, &completion));
    CHECK(!completion.solicited && !readable(descriptor, 0));
    post_message(MR_WORK_SOLICITED);
    EXPECT(MR_OK, mr_nic_wait(client, 0, MR_FOREVER, &completion));
    CHECK(readable(descriptor, -1));
    EXPECT(1, mr_nic_poll(server, 0, &completion, 1));
    CHECK(completion.solicited);
    check_message(&completion, MESSAGES + 2);
}

static void faults(void)
{
    mr_fault_counts sent, received, none;
    mr_connection_statistics statistics;
    mr_nic *plain = nic_make(0, NULL);
    EXPECT(MR_OK, mr_nic_fault_counts(client, 0, &sent));
    EXPECT(MR_OK, mr_nic_fault_counts(client, 1, &received));
    CHECK(sent.packets > MESSAGES && sent.lost > 0 && sent.duplicated == 0 && sent.reordered == 0);
    CHECK(received.packets > 0 && received.lost == 0 && received.duplicated == received.packets);
    EXPECT(MR_OK, mr_nic_fault_counts(server, 1, &received));
    CHECK(received.packets > MESSAGES && received.reordered > 0 && received.lost == 0);
    EXPECT(MR_OK, mr_nic_connection_statistics(client, connection, &statistics));
    CHECK(statistics.retransmissions > 0);
    printf("nic_loop: %u messages to poll's wakes, %lu datagrams lost, %lu reordered\n", (unsigned)MESSAGES,
           (unsigned long)sent.lost, (unsigned long)received.reordered);
    EXPECT(MR_OK, mr_nic_fault_counts(plain, 0, &none));
    CHECK(none.packets == 0 && none.lost == 0);
    EXPECT(1, mr_nic_free(plain, 0));
}

int main(void)
{
    server = nic_make(1, "in.reorder=5%:300us,seed=5");
    client = nic_make(0, "out.loss=4%,in.duplicate=100%,seed=6");
    EXPECT(MR_OK, mr_nic_register(client, out, sizeof out, 0, &out_region));
    EXPECT(MR_OK, mr_nic_register(server, in, sizeof in, MR_ACCESS_LOCAL_WRITE, &in_region));
    nic_connected(client, server, &connection, &incoming);
    loop();
    waking();
    faults();
    mr_nic_free(client, MR_FOREVER);
    mr_nic_free(server, MR_FOREVER);
    return 0;
}
