/* A client of `metaroce serve` in C: nic_client PORT. Writes, reads, sends and counts in the memory that the server lends, every byte checked. */
#include <string.h>

#include "check.h"

#define SERVICE 0x6d720001u
#define SIZE 3000000u
#define SECONDS UINT64_C(1000000000)

static uint8_t out[SIZE], in[SIZE], hello[24];
static uint64_t word;
static mr_nic *nic;
static uint32_t connection;

static uint64_t big_endian(const uint8_t *bytes, unsigned length)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < length; i++)
        number = number << 8 | bytes[i];
    return number;
}

static mr_slice slice(mr_region region, uint64_t offset, uint32_t length)
{
    mr_slice slice;
    memset(&slice, 0, sizeof slice);
    slice.region = region.index;
    slice.offset = offset;
    slice.length = length;
    return slice;
}

/* Posts, waits, checks how it ended. */
static mr_completion done(mr_work work, uint8_t status)
{
    static uint64_t id;
    mr_completion completion;
    work.id = ++id;
    EXPECT(MR_OK, mr_nic_post(nic, connection, 1, &work));
    EXPECT(MR_OK, mr_nic_wait(nic, 0, 20 * SECONDS, &completion));
    if (completion.status != status)
        printf("operation %d ended with status %d\n", work.operation, completion.status);
    CHECK(completion.id == id && completion.status == status && completion.connection == connection);
    return completion;
}

int main(int argc, char **argv)
{
    mr_nic_config config;
    mr_connection_config how;
    mr_address peer, mine[MR_MAX_PLANES];
    mr_region out_region, in_region, word_region, hello_region;
    mr_receive receive;
    mr_completion completion;
    mr_work work;
    mr_event event;
    mr_connection_statistics statistics;
    mr_endpoint_statistics all;
    uint8_t reason = 255;
    uint16_t code = 1;
    CHECK(argc == 2);
    memset(&config, 0, sizeof config);
    EXPECT(MR_OK, mr_address_ipv4(&config.addresses[0], 127, 0, 0, 1, 0));
    config.planes = 1;
    EXPECT(MR_OK, mr_nic_create(&config, &nic));
    EXPECT(1, mr_nic_addresses(nic, mine, MR_MAX_PLANES));
    CHECK(mine[0].port != 0 && mine[0].ip[12] == 127);

    EXPECT(MR_OK, mr_nic_register(nic, out, sizeof out, 0, &out_region));
    EXPECT(MR_OK, mr_nic_register(nic, in, sizeof in, MR_ACCESS_LOCAL_WRITE, &in_region));
    EXPECT(MR_OK, mr_nic_register(nic, &word, 8, MR_ACCESS_LOCAL_WRITE, &word_region));
    EXPECT(MR_OK, mr_nic_register(nic, hello, sizeof hello, MR_ACCESS_LOCAL_WRITE, &hello_region));
    EXPECT(MR_OK, mr_nic_connection_config(nic, &how));
    how.service = SERVICE;
    how.paths = 8;
    EXPECT(MR_OK, mr_address_ipv4(&peer, 127, 0, 0, 1, (uint16_t)atoi(argv[1])));
    EXPECT(MR_OK, mr_nic_connect(nic, &peer, 1, &how, 20 * SECONDS, &connection));
    EXPECT(1, mr_nic_poll_event(nic, &event));
    CHECK(event.kind == MR_EVENT_CONNECTED && !event.incoming && event.connection == connection);

    /* The server's first message says where its memory is: "mrp1", address, length, key. */
    memset(&receive, 0, sizeof receive);
    receive.id = 99;
    receive.local = slice(hello_region, 0, sizeof hello);
    EXPECT(MR_OK, mr_nic_post_receive(nic, connection, 0, &receive));
    EXPECT(MR_OK, mr_nic_wait(nic, 0, 20 * SECONDS, &completion));
    CHECK(completion.kind == MR_COMPLETION_RECEIVE && completion.id == 99);
    CHECK(completion.status == MR_STATUS_SUCCESS && completion.length == sizeof hello);
    CHECK(memcmp(hello, "mrp1", 4) == 0);
    uint64_t base = big_endian(hello + 4, 8), length = big_endian(hello + 12, 8);
    uint32_t key = (uint32_t)big_endian(hello + 20, 4);
    CHECK(length >= SIZE);

    for (uint32_t i = 0; i < SIZE; i++)
        out[i] = (uint8_t)(i * 2654435761u >> 24);
    memset(&work, 0, sizeof work);
    work.operation = MR_WRITE;
    work.local = slice(out_region, 0, SIZE);
    work.remote.address = base;
    work.remote.key = key;
    CHECK(done(work, MR_STATUS_SUCCESS).length == SIZE);
    work.operation = MR_READ;
    work.local = slice(in_region, 0, SIZE);
    CHECK(done(work, MR_STATUS_SUCCESS).kind == MR_COMPLETION_READ);
    CHECK(memcmp(in, out, SIZE) == 0);

    /* A word of it as a counter: 0 at first, since it is written so. */
    uint64_t zero = 0;
    work.operation = MR_WRITE;
    work.flags = MR_WORK_INLINE;
    work.inline_data = (const uint8_t *)&zero;
    work.local.length = 8;
    done(work, MR_STATUS_SUCCESS);
    work.flags = 0;
    work.local = slice(word_region, 0, 8);
    for (uint64_t i = 0; i < 20; i++) {
        work.operation = MR_FETCH_ADD;
        work.operand = 3;
        done(work, MR_STATUS_SUCCESS);
        CHECK(word == 3 * i);
    }
    work.operation = MR_COMPARE_SWAP;
    work.operand = 60;
    work.swap = 7;
    done(work, MR_STATUS_SUCCESS);
    CHECK(word == 60);
    done(work, MR_STATUS_SUCCESS);
    CHECK(word == 7);

    /* Messages to the buffers that it posts. */
    work.operation = MR_SEND_IMM;
    work.immediate = 5;
    work.local = slice(out_region, 1000, 100000);
    CHECK(done(work, MR_STATUS_SUCCESS).kind == MR_COMPLETION_SEND);

    /* A key that it does not know fails the stream, and nothing else. */
    work.operation = MR_WRITE;
    work.local = slice(out_region, 0, 64);
    work.remote.key = key ^ 1u << 20;
    done(work, MR_STATUS_REMOTE_INVALID_KEY);
    EXPECT(MR_ERROR_STREAM_FAILED, mr_nic_post(nic, connection, 1, &work));

    EXPECT(MR_OK, mr_nic_connection_statistics(nic, connection, &statistics));
    CHECK(statistics.bytes_sent >= SIZE && statistics.bytes_received >= SIZE);
    EXPECT(MR_OK, mr_nic_statistics(nic, &all));
    CHECK(all.connections_opened == 1 && all.datagrams_sent > SIZE / 4096);
    EXPECT(MR_OK, mr_nic_close(nic, connection, MR_CLOSE_DRAIN, 0));
    EXPECT(MR_OK, mr_nic_wait_closed(nic, connection, 20 * SECONDS, &reason, &code));
    CHECK(reason == MR_CLOSED_LOCALLY && code == 0);
    EXPECT(MR_ERROR_UNKNOWN_CONNECTION, mr_nic_close(nic, connection, MR_CLOSE_DRAIN, 0));
    EXPECT(MR_OK, mr_nic_deregister(nic, word_region.index));
    EXPECT(1, mr_nic_free(nic, 20 * SECONDS));
    printf("nic_client: %u bytes written and read back, 22 atomics, a message, a refused key\n", SIZE);
    return 0;
}
