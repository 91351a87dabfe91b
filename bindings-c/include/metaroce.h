/* The C interface of the MetaRoCE transport. Made of bindings-c/src by cbindgen: do not edit.
 *
 * Functions return 0 or a count if all went well and a negative `enum mr_error` if not. No function throws, unwinds or ends the process.
 * A pointer must be NULL (answered with MR_ERROR_NULL, or "not wanted" where that is said) or valid for what its type and the length
 * beside it say. Times are nanoseconds of any clock. Functions mr_endpoint_*, mr_psn_set_*, mr_decode and mr_encode allocate nothing and
 * exist in every build; mr_nic_*, mr_sim_* and mr_error_detail need an operating system.
 *
 * Licensed under Apache-2.0 OR MIT.
 */

#ifndef METAROCE_H
#define METAROCE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Planes of an endpoint, at most.
 */
#define MR_MAX_PLANES 8

/**
 * Flag: acknowledge at once (DATA).
 */
#define MR_FLAG_ACK_REQUEST 1

/**
 * Flag: was sent before (DATA).
 */
#define MR_FLAG_RETRANSMISSION 2

/**
 * Flag: the completion is to raise an event (DATA).
 */
#define MR_FLAG_SOLICITED 4

/**
 * Flag: answered over other reverse entropy (ACK, FENCE_ACK).
 */
#define MR_FLAG_REDIRECT 8

/**
 * What the memory must be aligned to.
 */
#define MR_ENDPOINT_ALIGNMENT 16

/**
 * Room for everything in front of a payload, and for whole datagrams without one.
 */
#define MR_HEADER_BUFFER 1408

/**
 * Waits for as long as it takes.
 */
#define MR_FOREVER UINT64_MAX

/**
 * Reasons for which datagrams are dropped.
 */
#define MR_DROP_REASONS 32

/**
 * Bytes that a work request may carry itself, at most.
 */
#define MR_INLINE_BYTES 32

/**
 * The longest message, bytes.
 */
#define MR_MAX_MESSAGE_BYTES 2147483647

/**
 * Right: target of receives, reads and atomics of this side. (Sending from a region is always allowed.)
 */
#define MR_ACCESS_LOCAL_WRITE 1

/**
 * Right: a peer may read it.
 */
#define MR_ACCESS_REMOTE_READ 2

/**
 * Right: a peer may write it.
 */
#define MR_ACCESS_REMOTE_WRITE 4

/**
 * Right: a peer may apply atomics to it.
 */
#define MR_ACCESS_REMOTE_ATOMIC 8

/**
 * All rights.
 */
#define MR_ACCESS_ALL 15

/**
 * Work flag: report failures only, not success.
 */
#define MR_WORK_UNSIGNALED 1

/**
 * Work flag: ask the peer to wake a waiter when it completes the receive.
 */
#define MR_WORK_SOLICITED 2

/**
 * Work flag: start only when every earlier READ and atomic of the stream has completed.
 */
#define MR_WORK_FENCE 4

/**
 * Work flag: the bytes are at `inline_data` (`local.length` of them, at most `MR_INLINE_BYTES`), and are copied when posted.
 */
#define MR_WORK_INLINE 8

/**
 * What functions return: 0 or a count if all went well, one of these (negative) if not.
 */
enum mr_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * All went well.
   */
  MR_OK = 0,
  /**
   * A pointer that is needed is NULL.
   */
  MR_ERROR_NULL = -1,
  /**
   * A pointer is not aligned as its type asks.
   */
  MR_ERROR_ALIGNMENT = -2,
  /**
   * The memory for an endpoint is too small: see `mr_endpoint_size`.
   */
  MR_ERROR_SIZE = -3,
  /**
   * No such profile, or this build of the library does not have it.
   */
  MR_ERROR_PROFILE = -4,
  /**
   * The pointer is not to an object of this kind (or one that was ended).
   */
  MR_ERROR_NOT_AN_OBJECT = -5,
  /**
   * The endpoint was copied or moved in memory: it must stay where it was made.
   */
  MR_ERROR_MOVED = -6,
  /**
   * The endpoint is in use: called from one of its own memory callbacks, or by two threads at once.
   */
  MR_ERROR_BUSY = -7,
  /**
   * A bug in this library; the object takes no further calls. Please report it.
   */
  MR_ERROR_INTERNAL = -8,
  /**
   * A buffer is too small for what is to be written to it.
   */
  MR_ERROR_BUFFER_TOO_SMALL = -9,
  /**
   * A number is none of those that its field or parameter may have.
   */
  MR_ERROR_BAD_ARGUMENT = -10,
  /**
   * A text is not UTF-8.
   */
  MR_ERROR_NOT_UTF8 = -11,
  /**
   * `planes` is not 1 to 8.
   */
  MR_ERROR_CONFIG_PLANES = -20,
  /**
   * `payload_bytes` is not 256 to 9000.
   */
  MR_ERROR_CONFIG_PAYLOAD_BYTES = -21,
  /**
   * `plane_mbps` is zero.
   */
  MR_ERROR_CONFIG_RATE = -22,
  /**
   * `entropies` is zero.
   */
  MR_ERROR_CONFIG_ENTROPIES = -23,
  /**
   * `ack_packets` or `ack_blocks` is zero.
   */
  MR_ERROR_CONFIG_ACKNOWLEDGMENTS = -24,
  /**
   * `run` of the connections that peers ask for is zero.
   */
  MR_ERROR_CONFIG_RUN = -25,
  /**
   * A plane in use has port zero.
   */
  MR_ERROR_CONFIG_ADDRESS = -26,
  /**
   * The number of connections is not 1 to 65,535.
   */
  MR_ERROR_CONFIG_CONNECTIONS = -27,
  /**
   * The connection table is full.
   */
  MR_ERROR_TABLE_FULL = -40,
  /**
   * Peer addresses: one per plane, 1 to 8, with a port that is not 0.
   */
  MR_ERROR_BAD_ADDRESS = -41,
  /**
   * `paths` or `run` of the connection is zero.
   */
  MR_ERROR_BAD_CONFIGURATION = -42,
  /**
   * No such connection (any more).
   */
  MR_ERROR_UNKNOWN_CONNECTION = -50,
  /**
   * The connection is not established yet, or closing.
   */
  MR_ERROR_NOT_ESTABLISHED = -51,
  /**
   * The connection has no such stream.
   */
  MR_ERROR_UNKNOWN_STREAM = -52,
  /**
   * The stream has failed.
   */
  MR_ERROR_STREAM_FAILED = -53,
  /**
   * As many operations or buffers are open as the queue holds: take completions first.
   */
  MR_ERROR_QUEUE_FULL = -54,
  /**
   * Longer than `MR_MAX_MESSAGE_BYTES`, than `MR_INLINE_BYTES` for inline data, or not 8 bytes for an atomic.
   */
  MR_ERROR_BAD_LENGTH = -55,
  /**
   * The remote address of an atomic is not a multiple of 8.
   */
  MR_ERROR_UNALIGNED = -56,
  /**
   * The stream does not use this receive queue, or it does not exist.
   */
  MR_ERROR_WRONG_QUEUE = -57,
  /**
   * Every region slot is taken.
   */
  MR_ERROR_REGIONS_FULL = -60,
  /**
   * The region's base plus its length does not fit in 64 bits.
   */
  MR_ERROR_REGION_WRAPS = -61,
  /**
   * No region is registered under this index.
   */
  MR_ERROR_UNKNOWN_REGION = -62,
  /**
   * The slice reaches outside of its region.
   */
  MR_ERROR_OUT_OF_BOUNDS = -63,
  /**
   * The region was not registered with the right that this operation needs.
   */
  MR_ERROR_ACCESS_DENIED = -64,
  /**
   * A region without bytes of its own at an endpoint without memory callbacks.
   */
  MR_ERROR_NO_CALLBACKS = -65,
  /**
   * A datagram is shorter than what its kind begins with, or has no room for its trailer.
   */
  MR_ERROR_DECODE_TRUNCATED = -70,
  /**
   * Not a length that a datagram of this kind can have.
   */
  MR_ERROR_DECODE_LENGTH = -71,
  /**
   * The CRC32C is not that of the bytes before it.
   */
  MR_ERROR_DECODE_CHECKSUM = -72,
  /**
   * A version of the wire format that is not ours.
   */
  MR_ERROR_DECODE_VERSION = -73,
  /**
   * No such kind of datagram.
   */
  MR_ERROR_DECODE_KIND = -74,
  /**
   * A flag that this kind or opcode may not carry.
   */
  MR_ERROR_DECODE_FLAGS = -75,
  /**
   * A field without meaning here is not zero.
   */
  MR_ERROR_DECODE_RESERVED = -76,
  /**
   * No such opcode.
   */
  MR_ERROR_DECODE_OPCODE = -77,
  /**
   * A message length that its opcode cannot have.
   */
  MR_ERROR_DECODE_MESSAGE_LENGTH = -78,
  /**
   * The payload does not lie inside of the message.
   */
  MR_ERROR_DECODE_BOUNDS = -79,
  /**
   * A payload that is too long, empty where it may not be, or not of its opcode's size.
   */
  MR_ERROR_DECODE_PAYLOAD = -80,
  /**
   * No such atomic operation.
   */
  MR_ERROR_DECODE_ATOMIC = -81,
  /**
   * No such error code in an ERROR message.
   */
  MR_ERROR_DECODE_ERROR_CODE = -82,
  /**
   * A SACK vector that cannot be.
   */
  MR_ERROR_DECODE_SACK = -83,
  /**
   * A number is outside of its field's range.
   */
  MR_ERROR_DECODE_OUT_OF_RANGE = -84,
  /**
   * No such reason for a REJECT.
   */
  MR_ERROR_DECODE_REJECT_REASON = -85,
  /**
   * Nothing happened in the time allowed.
   */
  MR_ERROR_TIMED_OUT = -100,
  /**
   * The connection was not made, or ended: `mr_error_detail` says why.
   */
  MR_ERROR_CLOSED = -101,
  /**
   * A system call failed: `mr_error_detail` says which and why.
   */
  MR_ERROR_SYSTEM = -102,
  /**
   * A plane's address names no interface, cannot be bound, or its interface does not carry the payload: see `mr_error_detail`.
   */
  MR_ERROR_PLANE = -103,
  /**
   * Completions wait to be taken before more can be posted.
   */
  MR_ERROR_COMPLETIONS_FULL = -104,
  /**
   * The fault plan cannot be read: `mr_error_detail` says what is wrong with it, and where.
   */
  MR_ERROR_FAULTS = -106,
  /**
   * The scenario or one of its settings is wrong: `mr_error_detail` says what and where.
   */
  MR_ERROR_SCENARIO = -110,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_error mr_error;
#else
typedef int32_t mr_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How large an endpoint's tables are.
 */
enum mr_profile
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * For small devices: connections of 4 paths, 32 outstanding packets, 2 streams and 2 open messages each way; 4 regions, 8 posted buffers.
   */
  MR_PROFILE_SMALL = 0,
  /**
   * For hosts: connections of 64 paths, 512 outstanding packets, 32 streams and 32 open messages each way; 256 regions, 1024 posted
   * buffers.
   */
  MR_PROFILE_LARGE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_profile mr_profile;
#else
typedef uint8_t mr_profile;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which congestion controller a connection uses (`controller` of `mr_connection_config`).
 */
enum mr_controller
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * ECN windows coupled over the paths, with the receiver's hints.
   */
  MR_CONTROLLER_COUPLED = 0,
  /**
   * No control: as much as the peer's window and the slots allow.
   */
  MR_CONTROLLER_NONE = 1,
  /**
   * A fixed rate: `fixed_mbps`.
   */
  MR_CONTROLLER_FIXED_RATE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_controller mr_controller;
#else
typedef uint8_t mr_controller;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an operation does (`operation` of `mr_work`).
 */
enum mr_operation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Write `local` to `remote`.
   */
  MR_WRITE = 0,
  /**
   * The same, and the peer's stream completes a receive with `immediate`.
   */
  MR_WRITE_IMM = 1,
  /**
   * Send `local` to the buffer that the peer posted.
   */
  MR_SEND = 2,
  /**
   * The same with `immediate`.
   */
  MR_SEND_IMM = 3,
  /**
   * Read `local.length` bytes at `remote` into `local`.
   */
  MR_READ = 4,
  /**
   * Add `operand` to the 64-bit word at `remote` (a multiple of 8). The word as it was goes to `local`, 8 bytes, in the machine's order.
   */
  MR_FETCH_ADD = 5,
  /**
   * Replace that word by `swap` if it equals `operand`. The word as it was goes to `local`.
   */
  MR_COMPARE_SWAP = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_operation mr_operation;
#else
typedef uint8_t mr_operation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a connection is closed.
 */
enum mr_close_mode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Finish what was posted, on both sides, then end.
   */
  MR_CLOSE_DRAIN = 0,
  /**
   * End now; open operations complete as flushed. The peer is told the code.
   */
  MR_CLOSE_ABORT = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_close_mode mr_close_mode;
#else
typedef uint8_t mr_close_mode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an operation was (`kind` of `mr_completion`).
 */
enum mr_completion_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A write of this side.
   */
  MR_COMPLETION_WRITE = 0,
  /**
   * A send of this side.
   */
  MR_COMPLETION_SEND = 1,
  /**
   * A read of this side.
   */
  MR_COMPLETION_READ = 2,
  /**
   * A fetch-add of this side.
   */
  MR_COMPLETION_FETCH_ADD = 3,
  /**
   * A compare-swap of this side.
   */
  MR_COMPLETION_COMPARE_SWAP = 4,
  /**
   * A message of the peer that went to a posted buffer.
   */
  MR_COMPLETION_RECEIVE = 5,
  /**
   * A write of the peer with an immediate, which used up a posted buffer without touching it.
   */
  MR_COMPLETION_RECEIVE_WRITE_IMM = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_completion_kind mr_completion_kind;
#else
typedef uint8_t mr_completion_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How an operation ended (`status` of `mr_completion` and `mr_event`).
 */
enum mr_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done: every byte is in its place.
   */
  MR_STATUS_SUCCESS = 0,
  /**
   * The local region was deregistered or its bytes could not be reached.
   */
  MR_STATUS_LOCAL_ACCESS = 1,
  /**
   * The peer does not know the key.
   */
  MR_STATUS_REMOTE_INVALID_KEY = 2,
  /**
   * Outside of the peer's region.
   */
  MR_STATUS_REMOTE_OUT_OF_BOUNDS = 3,
  /**
   * The peer's region does not grant this right.
   */
  MR_STATUS_REMOTE_ACCESS_DENIED = 4,
  /**
   * The message is longer than the buffer posted for it.
   */
  MR_STATUS_LENGTH_EXCEEDS_BUFFER = 5,
  /**
   * The peer posted no buffer in all the attempts that were allowed.
   */
  MR_STATUS_RECEIVER_NOT_READY = 6,
  /**
   * The peer could not make sense of the request.
   */
  MR_STATUS_REMOTE_INVALID_REQUEST = 7,
  /**
   * The peer's memory failed.
   */
  MR_STATUS_REMOTE_MEMORY_FAULT = 8,
  /**
   * Not tried or not finished, since an earlier operation failed or the stream or connection was closed.
   */
  MR_STATUS_FLUSHED = 9,
  /**
   * No path to the peer answers.
   */
  MR_STATUS_CONNECTION_LOST = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_status mr_status;
#else
typedef uint8_t mr_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a connection ended (`reason` of `mr_event`).
 */
enum mr_close_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * This side closed it.
   */
  MR_CLOSED_LOCALLY = 0,
  /**
   * The peer closed it after everything was delivered.
   */
  MR_CLOSED_BY_PEER = 1,
  /**
   * The peer aborted it; `code` is its code.
   */
  MR_ABORTED_BY_PEER = 2,
  /**
   * No path answered for the failure time.
   */
  MR_UNREACHABLE = 3,
  /**
   * The peer refused the connection; `code` is one of `enum mr_reject_reason`.
   */
  MR_REFUSED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_close_reason mr_close_reason;
#else
typedef uint8_t mr_close_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a peer refused a connection (`code` of `mr_event` with `MR_REFUSED`).
 */
enum mr_reject_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No common version.
   */
  MR_REJECT_VERSION = 1,
  /**
   * Nobody listens for this service.
   */
  MR_REJECT_NOT_LISTENING = 2,
  /**
   * No room for another connection.
   */
  MR_REJECT_BUSY = 3,
  /**
   * The parameters cannot be met.
   */
  MR_REJECT_PARAMETERS = 4,
  /**
   * The cookie is wrong or too old.
   */
  MR_REJECT_COOKIE = 5,
  /**
   * The addresses are not acceptable.
   */
  MR_REJECT_ADDRESS = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_reject_reason mr_reject_reason;
#else
typedef uint8_t mr_reject_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What happened (`kind` of `mr_event`).
 */
enum mr_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A connection is ready for work: `incoming`, `service`.
   */
  MR_EVENT_CONNECTED = 0,
  /**
   * A connection ended, and its handle is stale from now on: `reason`, `code`.
   */
  MR_EVENT_CLOSED = 1,
  /**
   * An operation ended: `completion`.
   */
  MR_EVENT_COMPLETION = 2,
  /**
   * A stream failed, its open operations were flushed: `stream`, `status`, `by_peer`.
   */
  MR_EVENT_STREAM_FAILED = 3,
  /**
   * All paths of a plane failed: `plane`.
   */
  MR_EVENT_PLANE_DOWN = 4,
  /**
   * A plane carries packets again: `plane`.
   */
  MR_EVENT_PLANE_UP = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_event_kind mr_event_kind;
#else
typedef uint8_t mr_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What the sending end of a path is doing (`state` of `mr_path_statistics`).
 */
enum mr_path_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Not part of the connection.
   */
  MR_PATH_UNUSED = 0,
  /**
   * Carries packets.
   */
  MR_PATH_ACTIVE = 1,
  /**
   * Carries nothing new; when all is acknowledged its entropy changes and it is active again.
   */
  MR_PATH_DRAINING = 2,
  /**
   * Two probes were not answered.
   */
  MR_PATH_SUSPECT = 3,
  /**
   * The receiver is asked to end the generation.
   */
  MR_PATH_FENCING = 4,
  /**
   * A new generation over new entropy; only probes go until one is answered.
   */
  MR_PATH_REOPENING = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_path_state mr_path_state;
#else
typedef uint8_t mr_path_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which traffic class a datagram may travel in (`traffic_class` of `mr_transmit`).
 */
enum mr_traffic_class
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Data, probes and setting up.
   */
  MR_CLASS_DATA = 0,
  /**
   * Acknowledgments and the like, which profit from a higher class.
   */
  MR_CLASS_CONTROL = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_traffic_class mr_traffic_class;
#else
typedef uint8_t mr_traffic_class;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a PSN meant to the receiver.
 */
enum mr_arrival
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Not seen before: it is in the set now.
   */
  MR_ARRIVAL_NEW = 0,
  /**
   * Accepted before.
   */
  MR_ARRIVAL_DUPLICATE = 1,
  /**
   * 256 or more ahead of the oldest that is missing: refused.
   */
  MR_ARRIVAL_BEYOND_WINDOW = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_arrival mr_arrival;
#else
typedef uint8_t mr_arrival;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a datagram is (`kind` of `mr_packet`).
 */
enum mr_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Asks for a connection: `source`, `version`, `highest_version`, `cookie`, `parameters`.
   */
  MR_KIND_INIT = 0,
  /**
   * Asks to repeat an INIT with the cookie that it brings: `cookie`.
   */
  MR_KIND_RETRY = 1,
  /**
   * Opens the connection: `source`, `rate_mbps`, `version`, `parameters`.
   */
  MR_KIND_ACCEPT = 2,
  /**
   * Refuses the connection: `reason`, `detail`.
   */
  MR_KIND_REJECT = 3,
  /**
   * A part of a message: `data`, `demand`, `payload`.
   */
  MR_KIND_DATA = 4,
  /**
   * What was received: blocks.
   */
  MR_KIND_ACK = 5,
  /**
   * Asks for an ACK at once (`psn` is the attempt).
   */
  MR_KIND_PROBE = 6,
  /**
   * Asks to freeze a generation of a path (`psn` is the attempt).
   */
  MR_KIND_FENCE = 7,
  /**
   * The final state of a frozen generation: one block.
   */
  MR_KIND_FENCE_ACK = 8,
  /**
   * Tells how much is about to be sent (`psn` is its number): `demand`.
   */
  MR_KIND_ANNOUNCE = 9,
  /**
   * A rate for the sender (`psn` is the announcement's number): `rate_mbps`.
   */
  MR_KIND_HINT = 10,
  /**
   * Ends the connection: `source`, `reason`, `mode`.
   */
  MR_KIND_CLOSE = 11,
  /**
   * Confirms the end: `source`.
   */
  MR_KIND_CLOSE_ACK = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mr_kind mr_kind;
#else
typedef uint8_t mr_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A sans-IO endpoint, in memory that the application gave to `mr_endpoint_init`.
 */
typedef struct mr_endpoint mr_endpoint;

/**
 * A NIC in software, on UDP sockets. Several threads may use it at once, but not while it is freed.
 */
typedef struct mr_nic mr_nic;

/**
 * What came of a run.
 */
typedef struct mr_sim_result mr_sim_result;

/**
 * An IP address and a UDP port.
 */
typedef struct mr_address {
  /**
   * IPv6, or IPv4 mapped into it (::ffff:a.b.c.d), in network order. See `mr_address_ipv4`.
   */
  uint8_t ip[16];
  /**
   * The port, in the machine's order; 0 where there is no address.
   */
  uint16_t port;
} mr_address;

/**
 * What a side can do and wants, in INIT and ACCEPT.
 */
typedef struct mr_parameters {
  /**
   * Where the side is reached on each plane.
   */
  struct mr_address addresses[MR_MAX_PLANES];
  /**
   * Most payload bytes of a DATA datagram on each plane, 256 to 9000.
   */
  uint16_t max_payload[MR_MAX_PLANES];
  /**
   * Capability bits; 1: willing to leave the checksum out.
   */
  uint32_t capabilities;
  /**
   * What one plane can take in, Mbit/s.
   */
  uint32_t ingress_mbps;
  /**
   * The application's number for what is asked for.
   */
  uint32_t service;
  /**
   * Packets between the oldest unacknowledged and the newest of a path, 1 to 256.
   */
  uint16_t window;
  /**
   * Streams each way.
   */
  uint16_t streams;
  /**
   * Messages that may be open at the receiver.
   */
  uint16_t open_messages;
  /**
   * Responses that may be open at the responder.
   */
  uint16_t open_responses;
  /**
   * Paths each way.
   */
  uint8_t paths;
  /**
   * Planes, 1 to `MR_MAX_PLANES`.
   */
  uint8_t planes;
} mr_parameters;

/**
 * What DATA adds to the common header. The opcodes are in docs/spec.md.
 */
typedef struct mr_data {
  /**
   * Remote address of the message's first byte; for SEND the receive number << 32 | the attempt.
   */
  uint64_t address;
  /**
   * Sequence number of the message on its stream.
   */
  uint32_t msn;
  /**
   * Length of the message, bytes.
   */
  uint32_t length;
  /**
   * Offset of the payload in the message, bytes.
   */
  uint32_t offset;
  /**
   * Key of the remote region, or the requester's token in a response.
   */
  uint32_t key;
  /**
   * Immediate for the application, or the requester's token in a request.
   */
  uint32_t immediate;
  /**
   * Stream of the message.
   */
  uint16_t stream;
  /**
   * What the message does, 0 (WRITE) to 9 (NOP).
   */
  uint8_t opcode;
} mr_data;

/**
 * Any datagram. Which fields have a meaning beside the common header (`kind` to `tsn`) is said at `enum mr_kind`; the others are 0.
 */
typedef struct mr_packet {
  /**
   * What a side can do and wants.
   */
  struct mr_parameters parameters;
  /**
   * What DATA adds.
   */
  struct mr_data data;
  /**
   * The payload of DATA, in the datagram it was decoded from.
   */
  const uint8_t *payload;
  /**
   * Its length, bytes.
   */
  size_t payload_length;
  /**
   * Acknowledgment blocks.
   */
  size_t block_count;
  /**
   * The cookie's proof.
   */
  uint8_t cookie_tag[16];
  /**
   * When the cookie was issued, milliseconds of the listener's clock.
   */
  uint32_t cookie_issued_ms;
  /**
   * Connection id that the receiver of the datagram has chosen; 0 in INIT.
   */
  uint32_t connection;
  /**
   * Packet sequence number, or the number of an attempt or announcement.
   */
  uint32_t psn;
  /**
   * Transmission sequence number.
   */
  uint32_t tsn;
  /**
   * The sender's own connection id.
   */
  uint32_t source;
  /**
   * A rate hint, Mbit/s; 0: none.
   */
  uint32_t rate_mbps;
  /**
   * Why: REJECT (`enum mr_reject_reason`) or CLOSE (the application's).
   */
  uint16_t reason;
  /**
   * More about why.
   */
  uint16_t detail;
  /**
   * One of `enum mr_kind`.
   */
  uint8_t kind;
  /**
   * `MR_FLAG_...`, and bits 4 to 6: the length of the first block's vector (ignored when encoding).
   */
  uint8_t flags;
  /**
   * Path slot, owned by the sender of the data.
   */
  uint8_t path;
  /**
   * Incarnation of the path slot.
   */
  uint8_t generation;
  /**
   * Bytes still queued, as a code (see `mr_demand_bytes`).
   */
  uint8_t demand;
  /**
   * Version chosen, or the lowest offered.
   */
  uint8_t version;
  /**
   * Highest version offered.
   */
  uint8_t highest_version;
  /**
   * 1 if an INIT brings a cookie.
   */
  uint8_t has_cookie;
  /**
   * One of `enum mr_close_mode`.
   */
  uint8_t mode;
} mr_packet;

/**
 * What a receiver has of a path.
 */
typedef struct mr_ack_block {
  /**
   * Bit i % 64 of number i / 64: PSN `cumulative` + i was received.
   */
  uint64_t sack[4];
  /**
   * The next PSN expected.
   */
  uint32_t cumulative;
  /**
   * TSN of the newest transmission received.
   */
  uint32_t newest_tsn;
  /**
   * Its PSN.
   */
  uint32_t newest_psn;
  /**
   * Data packets received, modulo 2^32.
   */
  uint32_t received;
  /**
   * Rate hint, Mbit/s; 0: none.
   */
  uint32_t hint_mbps;
  /**
   * CE marks received, modulo 2^16.
   */
  uint16_t ce_count;
  /**
   * Time since the newest arrived, units of 16 ns.
   */
  uint16_t delay;
  /**
   * The path.
   */
  uint8_t path;
  /**
   * Its generation.
   */
  uint8_t generation;
} mr_ack_block;

/**
 * Settings of an endpoint. Begin with `mr_endpoint_config_default`.
 */
typedef struct mr_endpoint_config {
  /**
   * This endpoint's address on each plane (the service port peers send to).
   */
  struct mr_address addresses[MR_MAX_PLANES];
  /**
   * Rate of one plane, Mbit/s, both ways.
   */
  uint32_t plane_mbps;
  /**
   * Longest time before an ACK is sent, nanoseconds.
   */
  uint64_t ack_delay_ns;
  /**
   * Most payload bytes in a packet, 256 to 9000.
   */
  uint16_t payload_bytes;
  /**
   * Bytes that every datagram costs on the wire beside itself (UDP, IP, Ethernet, preamble, gap).
   */
  uint16_t overhead_bytes;
  /**
   * UDP source ports per plane that paths may use (their indices are a path's entropy).
   */
  uint16_t entropies;
  /**
   * Physical ports, 1 to `MR_MAX_PLANES`.
   */
  uint8_t planes;
  /**
   * Not 0: accept connections.
   */
  uint8_t listen;
  /**
   * Not 0: leave out the CRC32C if the peer agrees.
   */
  uint8_t omit_checksum;
  /**
   * Not 0: give senders their fair share as a rate hint.
   */
  uint8_t hints;
  /**
   * Blocks in one ACK: 1 in hardware, more where one ACK answers a batch of datagrams.
   */
  uint8_t ack_blocks;
  /**
   * Data packets of a path before an ACK is due.
   */
  uint8_t ack_packets;
} mr_endpoint_config;

/**
 * Settings of a connection's sending side. Begin with `mr_connection_config_default`.
 */
typedef struct mr_connection_config {
  /**
   * Smallest time of a probe timer, against coarse clocks, nanoseconds.
   */
  uint64_t min_probe_timeout_ns;
  /**
   * Time without any answer after which the connection fails, nanoseconds.
   */
  uint64_t failure_timeout_ns;
  /**
   * Idle time after which the peer is asked whether it is there, nanoseconds; 0: never.
   */
  uint64_t keep_alive_ns;
  /**
   * Pause between attempts of a SEND that found no buffer, nanoseconds.
   */
  uint64_t rnr_delay_ns;
  /**
   * First round-trip time to assume, nanoseconds.
   */
  uint64_t initial_rtt_ns;
  /**
   * Least round-trip time to reckon with, nanoseconds; 0: what is measured.
   */
  uint64_t least_rtt_ns;
  /**
   * An application's number, told to the acceptor.
   */
  uint32_t service;
  /**
   * Rate of wire bytes for `MR_CONTROLLER_FIXED_RATE`, Mbit/s.
   */
  uint32_t fixed_mbps;
  /**
   * Paths that an initiator asks for.
   */
  uint8_t paths;
  /**
   * Packets in a row on one path before the next is chosen: 1 in hardware, more for segmentation offload.
   */
  uint8_t run;
  /**
   * Packets by which a path may reorder before a gap counts as a loss; 0 where paths keep order.
   */
  uint8_t reorder_tolerance;
  /**
   * Further attempts of a SEND that found no buffer, before it fails; 255: no limit.
   */
  uint8_t rnr_attempts;
  /**
   * Not 0: send an ANNOUNCE before a burst.
   */
  uint8_t announce;
  /**
   * One of `enum mr_controller`.
   */
  uint8_t controller;
} mr_connection_config;

/**
 * A place in a local region.
 */
typedef struct mr_slice {
  /**
   * Bytes from the region's start.
   */
  uint64_t offset;
  /**
   * Bytes.
   */
  uint32_t length;
  /**
   * The region's index.
   */
  uint16_t region;
} mr_slice;

/**
 * A place in a peer's memory.
 */
typedef struct mr_remote {
  /**
   * The peer's address (its region's base plus an offset).
   */
  uint64_t address;
  /**
   * The region's remote key.
   */
  uint32_t key;
} mr_remote;

/**
 * A work request. All zero but what the operation needs is right.
 */
typedef struct mr_work {
  /**
   * The application's number, returned in the completion.
   */
  uint64_t id;
  /**
   * This side's bytes. They must stay as they are until the completion (unless inline).
   */
  struct mr_slice local;
  /**
   * The peer's bytes.
   */
  struct mr_remote remote;
  /**
   * The bytes to write or send if `MR_WORK_INLINE` is set.
   */
  const uint8_t *inline_data;
  /**
   * The addend, or what the word is compared with.
   */
  uint64_t operand;
  /**
   * The new word.
   */
  uint64_t swap;
  /**
   * A value for the peer's completion.
   */
  uint32_t immediate;
  /**
   * One of `enum mr_operation`.
   */
  uint8_t operation;
  /**
   * `MR_WORK_...` flags.
   */
  uint8_t flags;
} mr_work;

/**
 * A buffer for a message to come.
 */
typedef struct mr_receive {
  /**
   * The application's number, returned in the completion.
   */
  uint64_t id;
  /**
   * Where the message goes.
   */
  struct mr_slice local;
} mr_receive;

/**
 * What is known of a datagram that came in.
 */
typedef struct mr_receive_meta {
  /**
   * Address it came from.
   */
  struct mr_address source;
  /**
   * Plane it came in on.
   */
  uint8_t plane;
  /**
   * The two ECN bits of its IP header: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
   */
  uint8_t ecn;
  /**
   * Not 0: the device has checked the CRC32C already; the trailer, if there is one, is still in the bytes.
   */
  uint8_t checksum_verified;
} mr_receive_meta;

/**
 * The end of an operation.
 */
typedef struct mr_completion {
  /**
   * The application's number for the work request or buffer.
   */
  uint64_t id;
  /**
   * The connection.
   */
  uint32_t connection;
  /**
   * Bytes of the message.
   */
  uint32_t length;
  /**
   * The peer's immediate, if `has_immediate`.
   */
  uint32_t immediate;
  /**
   * The stream.
   */
  uint16_t stream;
  /**
   * One of `enum mr_completion_kind`.
   */
  uint8_t kind;
  /**
   * One of `enum mr_status`.
   */
  uint8_t status;
  /**
   * 1 if the peer gave an immediate.
   */
  uint8_t has_immediate;
  /**
   * 1 if the peer asked to wake a waiter.
   */
  uint8_t solicited;
} mr_completion;

/**
 * Something that happened. Fields that its kind does not name are 0.
 */
typedef struct mr_event {
  /**
   * The completion of `MR_EVENT_COMPLETION`.
   */
  struct mr_completion completion;
  /**
   * The connection.
   */
  uint32_t connection;
  /**
   * The application number that the initiator gave.
   */
  uint32_t service;
  /**
   * The stream.
   */
  uint16_t stream;
  /**
   * The peer's abort code, or one of `enum mr_reject_reason`.
   */
  uint16_t code;
  /**
   * One of `enum mr_event_kind`.
   */
  uint8_t kind;
  /**
   * 1 if the peer asked for the connection.
   */
  uint8_t incoming;
  /**
   * One of `enum mr_close_reason`.
   */
  uint8_t reason;
  /**
   * One of `enum mr_status`.
   */
  uint8_t status;
  /**
   * 1 if this side found the fault in what the peer asked for.
   */
  uint8_t by_peer;
  /**
   * The plane.
   */
  uint8_t plane;
} mr_event;

/**
 * Counters of an endpoint.
 */
typedef struct mr_endpoint_statistics {
  /**
   * Datagrams received, valid or not.
   */
  uint64_t datagrams_received;
  /**
   * Their bytes.
   */
  uint64_t bytes_received;
  /**
   * Datagrams sent.
   */
  uint64_t datagrams_sent;
  /**
   * Their bytes.
   */
  uint64_t bytes_sent;
  /**
   * Datagrams dropped, by reason: see `mr_drop_reason_name`.
   */
  uint64_t drops[MR_DROP_REASONS];
  /**
   * Connections made, by either side.
   */
  uint64_t connections_opened;
  /**
   * Connections that ended.
   */
  uint64_t connections_closed;
} mr_endpoint_statistics;

/**
 * Counters and state of a connection.
 */
typedef struct mr_connection_statistics {
  /**
   * Data packets sent, retransmissions included.
   */
  uint64_t packets_sent;
  /**
   * Payload bytes in them.
   */
  uint64_t bytes_sent;
  /**
   * Data packets sent again.
   */
  uint64_t retransmissions;
  /**
   * Of these, those that had arrived after all, as far as the peer has told: its duplicates.
   */
  uint64_t spurious_retransmissions;
  /**
   * Data packets declared lost.
   */
  uint64_t losses;
  /**
   * Probes sent.
   */
  uint64_t probes_sent;
  /**
   * Fences begun.
   */
  uint64_t fences;
  /**
   * CE marks the peer reported.
   */
  uint64_t ce_marks;
  /**
   * Data packets accepted.
   */
  uint64_t packets_received;
  /**
   * Payload bytes placed.
   */
  uint64_t bytes_received;
  /**
   * Data packets dropped because they had been accepted before.
   */
  uint64_t duplicates_received;
  /**
   * Acknowledgment datagrams sent.
   */
  uint64_t acks_sent;
  /**
   * Acknowledgment datagrams received.
   */
  uint64_t acks_received;
  /**
   * Messages refused for want of a buffer, by this side.
   */
  uint64_t rnr_sent;
  /**
   * Bytes posted and not sent.
   */
  uint64_t queued_bytes;
  /**
   * The peer's latest rate hint, Mbit/s; 0: none, or too old.
   */
  uint32_t hint_mbps;
  /**
   * Congestion window, packets with 16 fraction bits.
   */
  uint32_t window;
  /**
   * Packets that count in the window.
   */
  uint32_t outstanding;
  /**
   * Least round-trip time, nanoseconds; 0: not measured.
   */
  uint32_t min_rtt_ns;
  /**
   * Messages posted and not complete.
   */
  uint32_t open_messages;
} mr_connection_statistics;

/**
 * Counters and state of one path, both directions.
 */
typedef struct mr_path_statistics {
  /**
   * Payload bytes sent.
   */
  uint64_t bytes_sent;
  /**
   * Data packets sent first, modulo 2^32 like the counts below.
   */
  uint32_t packets_sent;
  /**
   * Data packets sent again.
   */
  uint32_t retransmissions;
  /**
   * Data packets declared lost.
   */
  uint32_t losses;
  /**
   * Retransmissions that had arrived after all.
   */
  uint32_t spurious_retransmissions;
  /**
   * CE marks reported.
   */
  uint32_t ce_marks;
  /**
   * Share of the window, packets with 16 fraction bits.
   */
  uint32_t weight;
  /**
   * Smoothed round-trip time, nanoseconds; 0: not measured.
   */
  uint32_t srtt_ns;
  /**
   * Data packets received over the peer's path of this number, in its generation.
   */
  uint32_t packets_received;
  /**
   * Duplicates among them.
   */
  uint32_t duplicates_received;
  /**
   * Its UDP source port index.
   */
  uint16_t entropy;
  /**
   * Packets in flight.
   */
  uint16_t inflight;
  /**
   * CE marks among them, modulo 2^16.
   */
  uint16_t ce_received;
  /**
   * One of `enum mr_path_state`.
   */
  uint8_t state;
  /**
   * Its plane.
   */
  uint8_t plane;
  /**
   * Its incarnation.
   */
  uint8_t generation;
} mr_path_statistics;

/**
 * What was agreed on with the peer.
 */
typedef struct mr_agreed {
  /**
   * PSNs a path may span.
   */
  uint16_t window;
  /**
   * Streams.
   */
  uint16_t streams;
  /**
   * Messages this side may have begun and not completed.
   */
  uint16_t open_messages;
  /**
   * READs and atomics this side may have open.
   */
  uint16_t open_responses;
  /**
   * Payload bytes of a full packet.
   */
  uint16_t payload_bytes;
  /**
   * Paths this side may send on.
   */
  uint8_t paths;
  /**
   * Planes that both have.
   */
  uint8_t planes;
  /**
   * 1 if the CRC32C is left out.
   */
  uint8_t omit_checksum;
} mr_agreed;

/**
 * How the core reaches bytes that are not behind a pointer (a device's memory, say). It names places inside of registered regions only.
 * A callback returns 0, or anything else if the bytes cannot be reached. It must not call functions of the endpoint: they answer
 * `MR_ERROR_BUSY`.
 */
typedef struct mr_memory {
  /**
   * Handed to the callbacks.
   */
  void *context;
  /**
   * Stores `length` bytes at `offset` of the region.
   */
  int32_t (*place)(void *context, uint16_t region, uint64_t offset, const uint8_t *bytes, size_t length);
  /**
   * Copies `length` bytes at `offset` of the region to `bytes`.
   */
  int32_t (*gather)(void *context, uint16_t region, uint64_t offset, uint8_t *bytes, size_t length);
  /**
   * Applies an atomic (`MR_FETCH_ADD` or `MR_COMPARE_SWAP`) to the 64-bit word at `offset` and stores the word as it was to `old`. May be
   * NULL: then the word is gathered and placed, which is right for memory that only the endpoint changes.
   */
  int32_t (*modify)(void *context,
                    uint16_t region,
                    uint64_t offset,
                    uint8_t operation,
                    uint64_t operand,
                    uint64_t swap,
                    uint64_t *old);
} mr_memory;

/**
 * A registered region as its owner knows it.
 */
typedef struct mr_region {
  /**
   * Remote key, to be told to peers.
   */
  uint32_t key;
  /**
   * Local name, for slices and memory callbacks.
   */
  uint16_t index;
} mr_region;

/**
 * A datagram to be sent.
 */
typedef struct mr_transmit {
  /**
   * Bytes of the whole datagram.
   */
  size_t length;
  /**
   * Bytes of it in the header buffer.
   */
  size_t header_length;
  /**
   * The payload's first byte, if `has_payload` and its region is not behind callbacks; else NULL. It is `payload.length` bytes.
   */
  const uint8_t *payload_bytes;
  /**
   * The payload that follows the header, if `has_payload`.
   */
  struct mr_slice payload;
  /**
   * The connection, if `has_connection`.
   */
  uint32_t connection;
  /**
   * Where to.
   */
  struct mr_address destination;
  /**
   * Index of the UDP source port, 0 to `entropies` - 1.
   */
  uint16_t entropy;
  /**
   * By which plane.
   */
  uint8_t plane;
  /**
   * The two ECN bits for its IP header.
   */
  uint8_t ecn;
  /**
   * One of `enum mr_traffic_class`.
   */
  uint8_t traffic_class;
  /**
   * 1 if it is of a connection.
   */
  uint8_t has_connection;
  /**
   * 1 if there is a payload to be gathered.
   */
  uint8_t has_payload;
  /**
   * 1 if a CRC32C of all the bytes follows them (big-endian, see `mr_crc32c`).
   */
  uint8_t trailer;
} mr_transmit;

/**
 * Settings of a NIC. All zero but the planes is right.
 */
typedef struct mr_nic_config {
  /**
   * A local address for each plane, and the UDP port on which it receives (0: any free one).
   */
  struct mr_address addresses[MR_MAX_PLANES];
  /**
   * What the network is to do to this NIC's datagrams, for tests: a text as of the option `--faults` of the command, such as
   * "loss=1%,out.delay=50us,seed=7"; NULL: nothing. It is read when the NIC is made.
   */
  const char *faults;
  /**
   * Rate of one plane, Mbit/s; 0: that of the slowest plane's interface.
   */
  uint32_t plane_mbps;
  /**
   * Connections at one time; 0: 64.
   */
  uint32_t connections;
  /**
   * Most payload of a packet, 256 to 9000; 0: what the interfaces carry, 4096 at most.
   */
  uint16_t payload_bytes;
  /**
   * UDP source ports per plane; 0: 64.
   */
  uint16_t entropies;
  /**
   * Planes, 1 to `MR_MAX_PLANES`.
   */
  uint8_t planes;
  /**
   * Not 0: peers may connect.
   */
  uint8_t listen;
  /**
   * Not 0: progress is made on a thread of its own; 0: by the application's calls to functions that wait or `mr_nic_progress`.
   */
  uint8_t background;
} mr_nic_config;

/**
 * Datagrams to which faults were injected, in one direction, by what was done to them.
 */
typedef struct mr_fault_counts {
  /**
   * All datagrams that came by.
   */
  uint64_t packets;
  /**
   * Dropped at random.
   */
  uint64_t lost;
  /**
   * Dropped in bursts.
   */
  uint64_t lost_in_bursts;
  /**
   * Dropped by the slow link's queue.
   */
  uint64_t dropped_by_queue;
  /**
   * Dropped by blackholes.
   */
  uint64_t blackholed;
  /**
   * Delivered twice.
   */
  uint64_t duplicated;
  /**
   * With a bit flipped.
   */
  uint64_t corrupted;
  /**
   * CE-marked.
   */
  uint64_t marked;
  /**
   * Held back so that others pass.
   */
  uint64_t reordered;
} mr_fault_counts;

/**
 * The set of PSNs that a path has received, and what its acknowledgments say. Begin with `mr_psn_set_init`; may be copied.
 */
typedef struct mr_psn_set {
  /**
   * Not for applications.
   */
  uint64_t opaque[14];
} mr_psn_set;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes an IPv4 address a.b.c.d with a UDP port.
 */
int32_t mr_address_ipv4(struct mr_address *address,
                        uint8_t a,
                        uint8_t b,
                        uint8_t c,
                        uint8_t d,
                        uint16_t port);

/**
 * Writes the text of this thread's latest error of the NIC or the simulator: what was wrong, where, and what would do; or what the
 * library said of its bug if `MR_ERROR_INTERNAL` came after that. It is cut to `size` and ended by a zero. Returns its whole length in
 * bytes without the zero (0: there was none), or `MR_ERROR_NULL`.
 */
int32_t mr_error_detail(char *buffer,
                        size_t size);

/**
 * Reads a datagram of `length` bytes; `checksum` not 0: a CRC32C follows it, which is checked and taken off. The blocks of an ACK or FENCE_ACK
 * are stored to `blocks`, which has room for `capacity` (NULL and 0: not wanted).
 *
 * Errors: `MR_ERROR_DECODE_...`; `MR_ERROR_BUFFER_TOO_SMALL` if it has more blocks than there is room for (`block_count` of the packet
 * says how many).
 */
int32_t mr_decode(const uint8_t *datagram,
                  size_t length,
                  uint8_t checksum,
                  struct mr_packet *packet,
                  struct mr_ack_block *blocks,
                  size_t capacity);

/**
 * Writes a datagram to `buffer`, which is `size` bytes, with a CRC32C behind it if `checksum` is not 0, and stores its length. Of an ACK the
 * blocks are at `blocks` (`block_count` of the packet says how many). What `mr_decode` gave is written as the bytes that it came from.
 *
 * Errors: `MR_ERROR_BUFFER_TOO_SMALL`, and `MR_ERROR_DECODE_...` for what `mr_decode` would refuse.
 */
int32_t mr_encode(const struct mr_packet *packet,
                  const struct mr_ack_block *blocks,
                  uint8_t checksum,
                  uint8_t *buffer,
                  size_t size,
                  size_t *length);

/**
 * The CRC32C (Castagnoli) of bytes whose CRC32C is `crc`, followed by these; 0 is that of no bytes. It is stored to `result`.
 */
int32_t mr_crc32c(uint32_t crc,
                  const uint8_t *bytes,
                  size_t length,
                  uint32_t *result);

/**
 * The bytes that a demand code stands for.
 */
uint64_t mr_demand_bytes(uint8_t code);

/**
 * The least demand code that stands for at least so many bytes.
 */
uint8_t mr_demand_code(uint64_t bytes);

/**
 * The default settings of an endpoint. Its addresses are unset: set one for each plane.
 */
int32_t mr_endpoint_config_default(struct mr_endpoint_config *config);

/**
 * The default settings of a connection.
 */
int32_t mr_connection_config_default(struct mr_connection_config *config);

/**
 * Gives a connection a work request on a stream. Nothing has changed if it is refused.
 *
 * Errors: `MR_ERROR_UNKNOWN_CONNECTION` to `MR_ERROR_WRONG_QUEUE`, those of regions, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_endpoint_post(struct mr_endpoint *endpoint,
                         uint64_t now_ns,
                         uint32_t connection,
                         uint16_t stream,
                         const struct mr_work *work);

/**
 * Posts a buffer to a stream's own queue: its k-th receive-consuming message goes to its k-th buffer.
 *
 * Errors: as `mr_endpoint_post`.
 */
int32_t mr_endpoint_post_receive(struct mr_endpoint *endpoint,
                                 uint32_t connection,
                                 uint16_t stream,
                                 const struct mr_receive *receive);

/**
 * Posts a buffer to a queue (0 to 7) that is shared by the streams that were attached to it.
 *
 * Errors: `MR_ERROR_WRONG_QUEUE`, `MR_ERROR_QUEUE_FULL`, those of regions.
 */
int32_t mr_endpoint_post_shared_receive(struct mr_endpoint *endpoint,
                                        uint8_t queue,
                                        const struct mr_receive *receive);

/**
 * Lets a stream take its buffers from a shared queue (0 to 7), if it never had one of its own.
 *
 * Errors: as `mr_endpoint_post`.
 */
int32_t mr_endpoint_attach_shared_queue(struct mr_endpoint *endpoint,
                                        uint32_t connection,
                                        uint16_t stream,
                                        uint8_t queue);

/**
 * Asks the peer for a share of its capacity ahead of a burst. (A large burst after a pause does so by itself.)
 *
 * Errors: `MR_ERROR_UNKNOWN_CONNECTION`, `MR_ERROR_NOT_ESTABLISHED`.
 */
int32_t mr_endpoint_announce(struct mr_endpoint *endpoint,
                             uint32_t connection);

/**
 * Ends a connection in one of `enum mr_close_mode`; `code` is told to the peer of an abort. `MR_EVENT_CLOSED` follows when it has ended.
 *
 * Errors: `MR_ERROR_UNKNOWN_CONNECTION`, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_endpoint_close(struct mr_endpoint *endpoint,
                          uint64_t now_ns,
                          uint32_t connection,
                          uint8_t mode,
                          uint16_t code);

/**
 * Takes a datagram in, trailer included. Its bytes must not lie in a registered region.
 *
 * Returns 0, or 1 if it had no effect (it is counted as well): then `drop_reason`, which may be NULL, is the index of the reason
 * (see `mr_drop_reason_name`).
 */
int32_t mr_endpoint_handle_datagram(struct mr_endpoint *endpoint,
                                    uint64_t now_ns,
                                    const struct mr_receive_meta *meta,
                                    const uint8_t *datagram,
                                    size_t length,
                                    uint32_t *drop_reason);

/**
 * The earliest time at which `mr_endpoint_handle_timeout` has something to do. Returns 1 and stores it, or 0 if there is none.
 */
int32_t mr_endpoint_poll_timeout(struct mr_endpoint *endpoint,
                                 uint64_t *at_ns);

/**
 * Lets the timers fire whose time has come.
 */
int32_t mr_endpoint_handle_timeout(struct mr_endpoint *endpoint, uint64_t now_ns);

/**
 * The next thing that happened. Returns 1 and stores it, or 0 if there is none.
 */
int32_t mr_endpoint_poll_event(struct mr_endpoint *endpoint, struct mr_event *event);

/**
 * Counters of the endpoint.
 */
int32_t mr_endpoint_get_statistics(struct mr_endpoint *endpoint, struct mr_endpoint_statistics *statistics);

/**
 * Counters of a connection, or `MR_ERROR_UNKNOWN_CONNECTION`.
 */
int32_t mr_endpoint_connection_statistics(struct mr_endpoint *endpoint,
                                          uint32_t connection,
                                          struct mr_connection_statistics *statistics);

/**
 * Counters of a path, by its number. `MR_ERROR_UNKNOWN_CONNECTION` if there is no such connection or path.
 */
int32_t mr_endpoint_path_statistics(struct mr_endpoint *endpoint,
                                    uint32_t connection,
                                    uint8_t path,
                                    struct mr_path_statistics *statistics);

/**
 * What was agreed on with the peer of a connection. Errors: `MR_ERROR_UNKNOWN_CONNECTION`, also while it is being set up.
 */
int32_t mr_endpoint_agreed(struct mr_endpoint *endpoint,
                           uint32_t connection,
                           struct mr_agreed *agreed);

/**
 * Says which planes' lines take no data now (bit p: plane p), until told otherwise.
 */
int32_t mr_endpoint_set_busy_planes(struct mr_endpoint *endpoint, uint8_t planes);

/**
 * Ends the endpoint: its memory is the application's again. Peers are not told: close connections before.
 */
int32_t mr_endpoint_end(struct mr_endpoint *endpoint);

/**
 * Bytes of memory that an endpoint of this profile (one of `enum mr_profile`) with so many connections takes; 0 if this build has no
 * such profile.
 */
size_t mr_endpoint_size(uint8_t profile,
                        uint32_t connections);

/**
 * Makes an endpoint in `memory`, which is `size` bytes, aligned to `MR_ENDPOINT_ALIGNMENT`, and the endpoint's alone until `mr_endpoint_end`.
 * It must stay where it is.
 *
 * `acceptor` are the settings of connections that peers ask for (NULL: default), `secret` is 32 random bytes, `callbacks` is where
 * regions without bytes are (NULL: all have bytes). One thread at a time may use the endpoint.
 *
 * `endpoint` is set to the endpoint. Errors: `MR_ERROR_NULL`, `MR_ERROR_ALIGNMENT`, `MR_ERROR_SIZE`, `MR_ERROR_PROFILE`,
 * `MR_ERROR_CONFIG_...`, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_endpoint_init(void *memory,
                         size_t size,
                         uint8_t profile,
                         uint32_t connections,
                         const struct mr_endpoint_config *config,
                         const struct mr_connection_config *acceptor,
                         const uint8_t *secret,
                         const struct mr_memory *callbacks,
                         struct mr_endpoint **endpoint);

/**
 * Not 0: accepts connections from now on; 0: no more.
 */
int32_t mr_endpoint_listen(struct mr_endpoint *endpoint, uint8_t on);

/**
 * Registers `length` bytes that peers know as starting at `base`, with `MR_ACCESS_...` rights.
 *
 * `bytes` is where they are, valid for reads and writes until the region is deregistered; NULL: behind the endpoint's callbacks.
 *
 * Errors: `MR_ERROR_REGIONS_FULL`, `MR_ERROR_REGION_WRAPS`, `MR_ERROR_NO_CALLBACKS`, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_endpoint_register(struct mr_endpoint *endpoint,
                             uint64_t base,
                             uint64_t length,
                             uint8_t rights,
                             void *bytes,
                             struct mr_region *region);

/**
 * Invalidates a region. Operations that still need it fail. Takes time in proportion to open messages and posted buffers.
 *
 * Errors: `MR_ERROR_UNKNOWN_REGION`.
 */
int32_t mr_endpoint_deregister(struct mr_endpoint *endpoint,
                               uint16_t region);

/**
 * Asks a peer for a connection: its service address on each of `planes` planes. `config` may be NULL: default settings.
 * `MR_EVENT_CONNECTED` or `MR_EVENT_CLOSED` tells the outcome for the handle that is stored to `connection`.
 *
 * Errors: `MR_ERROR_TABLE_FULL`, `MR_ERROR_BAD_ADDRESS`, `MR_ERROR_BAD_CONFIGURATION`, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_endpoint_connect(struct mr_endpoint *endpoint,
                            uint64_t now_ns,
                            const struct mr_address *peer,
                            size_t planes,
                            const struct mr_connection_config *config,
                            uint32_t *connection);

/**
 * The next datagram to send, for those that gather payloads and append the CRC32C themselves: everything in front of the payload is written
 * to `header`, which is `size` bytes, at least `MR_HEADER_BUFFER`; the payload is named.
 *
 * Returns 1, or 0 if there is none. Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
 */
int32_t mr_endpoint_poll_transmit(struct mr_endpoint *endpoint,
                                  uint64_t now_ns,
                                  uint8_t *header,
                                  size_t size,
                                  struct mr_transmit *transmit);

/**
 * The next datagram to send, whole, at the start of `buffer`, which is `size` bytes: at least `payload_bytes` of the endpoint's settings + 52,
 * and `MR_HEADER_BUFFER`. It must not lie in a registered region.
 *
 * Returns 1, or 0 if there is none. Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
 */
int32_t mr_endpoint_poll_datagram(struct mr_endpoint *endpoint,
                                  uint64_t now_ns,
                                  uint8_t *buffer,
                                  size_t size,
                                  struct mr_transmit *transmit);

/**
 * The text of an error code: English, static, never NULL.
 */
const char *mr_error_string(int32_t code);

/**
 * Makes a NIC: binds its service ports, starts its thread if it has one. It is to be given back by `mr_nic_free`.
 *
 * Errors: `MR_ERROR_CONFIG_...`, `MR_ERROR_PLANE`, `MR_ERROR_FAULTS`, `MR_ERROR_NOT_UTF8`, `MR_ERROR_SYSTEM`; `mr_error_detail` says more.
 */
int32_t mr_nic_create(const struct mr_nic_config *config,
                      struct mr_nic **nic);

/**
 * Closes all connections after what is posted is done, aborts those that are not through after `timeout_ns` (0: at once, as after
 * `MR_ERROR_INTERNAL`), and gives the NIC back with its registrations. NULL does nothing. Returns 1 if all connections were through, 0 if
 * some were aborted.
 */
int32_t mr_nic_free(struct mr_nic *nic,
                    uint64_t timeout_ns);

/**
 * Stores the addresses on which the NIC receives, one for each plane, to `addresses`, which has room for `capacity`. Returns how many.
 */
int32_t mr_nic_addresses(const struct mr_nic *nic,
                         struct mr_address *addresses,
                         size_t capacity);

/**
 * Registers `length` bytes with `MR_ACCESS_...` rights. Peers know them by their address. They must be valid for reads and writes from any
 * thread until `mr_nic_deregister` or `mr_nic_free`; what a peer may write should be read after the completion that tells of it.
 *
 * Errors: `MR_ERROR_REGIONS_FULL`, `MR_ERROR_BAD_ARGUMENT`.
 */
int32_t mr_nic_register(const struct mr_nic *nic,
                        void *bytes,
                        size_t length,
                        uint8_t rights,
                        struct mr_region *region);

/**
 * Takes a region's rights away: its memory is the application's alone again. Errors: `MR_ERROR_UNKNOWN_REGION`.
 */
int32_t mr_nic_deregister(const struct mr_nic *nic,
                          uint16_t region);

/**
 * Settings of a connection that suit this NIC's sockets and packets.
 */
int32_t mr_nic_connection_config(const struct mr_nic *nic, struct mr_connection_config *config);

/**
 * Connects to a peer, given its address on each of `planes` planes, and waits until it is done. `config` may be NULL: settings that suit.
 *
 * Errors: those of `mr_endpoint_connect`, `MR_ERROR_CLOSED`, `MR_ERROR_TIMED_OUT`.
 */
int32_t mr_nic_connect(const struct mr_nic *nic,
                       const struct mr_address *peer,
                       size_t planes,
                       const struct mr_connection_config *config,
                       uint64_t timeout_ns,
                       uint32_t *connection);

/**
 * Takes a connection that a peer made, waiting for it. `service`, which may be NULL, is the number that the initiator gave.
 *
 * Errors: `MR_ERROR_TIMED_OUT`.
 */
int32_t mr_nic_accept(const struct mr_nic *nic,
                      uint64_t timeout_ns,
                      uint32_t *connection,
                      uint32_t *service);

/**
 * Posts an operation on a stream of a connection. Without a background thread it is sent by the next progress.
 *
 * Errors: as `mr_endpoint_post`, `MR_ERROR_COMPLETIONS_FULL`.
 */
int32_t mr_nic_post(const struct mr_nic *nic,
                    uint32_t connection,
                    uint16_t stream,
                    const struct mr_work *work);

/**
 * Posts a buffer for a message to come on a stream of a connection. Errors: as `mr_nic_post`.
 */
int32_t mr_nic_post_receive(const struct mr_nic *nic,
                            uint32_t connection,
                            uint16_t stream,
                            const struct mr_receive *receive);

/**
 * Posts a buffer to a queue (0 to 7) that streams share. Errors: as `mr_endpoint_post_shared_receive`.
 */
int32_t mr_nic_post_shared_receive(const struct mr_nic *nic, uint8_t queue, const struct mr_receive *receive);

/**
 * Lets a stream take its receive buffers from a shared queue, before it receives anything. Errors: as `mr_endpoint_attach_shared_queue`.
 */
int32_t mr_nic_attach_shared_queue(const struct mr_nic *nic,
                                   uint32_t connection,
                                   uint16_t stream,
                                   uint8_t queue);

/**
 * Asks the peer for a share of its capacity ahead of a burst. Errors: as `mr_endpoint_announce`.
 */
int32_t mr_nic_announce(const struct mr_nic *nic, uint32_t connection);

/**
 * Takes one event other than a completion. Returns 1 and stores it, or 0 if there is none. Events that nobody takes are dropped, oldest first.
 */
int32_t mr_nic_poll_event(const struct mr_nic *nic,
                          struct mr_event *event);

/**
 * One pass: receives, sends, reports. Returns 1 if there was anything to do, else 0. Never sleeps.
 */
int32_t mr_nic_progress(const struct mr_nic *nic);

/**
 * Starts closing a connection, in one of `enum mr_close_mode`; `code` is told to the peer of an abort.
 *
 * Errors: `MR_ERROR_UNKNOWN_CONNECTION` if it is over already.
 */
int32_t mr_nic_close(const struct mr_nic *nic, uint32_t connection, uint8_t mode, uint16_t code);

/**
 * Waits until a connection is over, stores why (one of `enum mr_close_reason`, and its code; each may be NULL), and forgets the connection.
 *
 * Errors: `MR_ERROR_TIMED_OUT`, `MR_ERROR_UNKNOWN_CONNECTION`.
 */
int32_t mr_nic_wait_closed(const struct mr_nic *nic,
                           uint32_t connection,
                           uint64_t timeout_ns,
                           uint8_t *reason,
                           uint16_t *code);

/**
 * Counters of the NIC's endpoint.
 */
int32_t mr_nic_statistics(const struct mr_nic *nic, struct mr_endpoint_statistics *statistics);

/**
 * Counters of a connection; after its end the last. Errors: `MR_ERROR_UNKNOWN_CONNECTION`.
 */
int32_t mr_nic_connection_statistics(const struct mr_nic *nic,
                                     uint32_t connection,
                                     struct mr_connection_statistics *statistics);

/**
 * What the NIC's fault plan has done to datagrams that were sent (`incoming` 0) or received (not 0). All 0 if it has none.
 */
int32_t mr_nic_fault_counts(const struct mr_nic *nic,
                            uint8_t incoming,
                            struct mr_fault_counts *counts);

/**
 * Makes another completion queue, which is there until `mr_nic_free`. Returns its number: 1, 2 and so on. (Queue 0 is there from the start.)
 *
 * Errors: `MR_ERROR_SYSTEM`.
 */
int32_t mr_nic_create_queue(const struct mr_nic *nic);

/**
 * Reports completions of a connection to these queues instead of queue 0 from now on: of operations to `send`, of receives to `receive`.
 *
 * Errors: `MR_ERROR_UNKNOWN_CONNECTION`; `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
 */
int32_t mr_nic_set_queues(const struct mr_nic *nic,
                          uint32_t connection,
                          uint32_t send,
                          uint32_t receive);

/**
 * The same for one stream, whatever its connection's queues are. Errors: as `mr_nic_set_queues`.
 */
int32_t mr_nic_set_stream_queues(const struct mr_nic *nic,
                                 uint32_t connection,
                                 uint16_t stream,
                                 uint32_t send,
                                 uint32_t receive);

/**
 * Takes up to `capacity` completions that are in a queue, without making progress. Returns how many.
 *
 * Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
 */
int32_t mr_nic_poll(const struct mr_nic *nic,
                    uint32_t queue,
                    struct mr_completion *completions,
                    size_t capacity);

/**
 * Takes one completion from a queue, waiting for it. Without a background thread this makes progress meanwhile.
 *
 * Errors: `MR_ERROR_TIMED_OUT`; `MR_ERROR_BAD_ARGUMENT` if there is no such queue; `MR_ERROR_INTERNAL` if the NIC's thread has ended by a bug.
 */
int32_t mr_nic_wait(const struct mr_nic *nic,
                    uint32_t queue,
                    uint64_t timeout_ns,
                    struct mr_completion *completion);

/**
 * The descriptor (0 or more) that becomes readable when a completion comes to a queue after `mr_nic_arm`. It is the NIC's: to be watched
 * only (by poll, epoll and the like), until `mr_nic_free`.
 *
 * Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
 */
int32_t mr_nic_queue_descriptor(const struct mr_nic *nic,
                                uint32_t queue);

/**
 * Makes a queue's descriptor readable at the next completion; with `solicited_only` not 0 at the next receive that the peer asked to wake a
 * waiter for, or failure. It stays readable until `mr_nic_disarm`. Returns 1 if no completion is in the queue, 0 if there are some: they are
 * to be taken before sleeping.
 *
 * Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
 */
int32_t mr_nic_arm(const struct mr_nic *nic,
                   uint32_t queue,
                   uint8_t solicited_only);

/**
 * Makes a queue's descriptor unreadable, until `mr_nic_arm` and a completion.
 *
 * Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
 */
int32_t mr_nic_disarm(const struct mr_nic *nic, uint32_t queue);

/**
 * Stores the descriptors on which datagrams come in, one for each plane, to `descriptors`, which has room for `capacity`. Returns how many.
 * They are the NIC's: to be watched only, until `mr_nic_free`, where it has no background thread.
 *
 * Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
 */
int32_t mr_nic_descriptors(const struct mr_nic *nic,
                           int32_t *descriptors,
                           size_t capacity);

/**
 * Makes progress until there is nothing to do, and stores after how many nanoseconds there is if nothing comes in on `mr_nic_descriptors` and
 * nothing is posted; `MR_FOREVER`: not before. The next call is due then.
 */
int32_t mr_nic_prepare_sleep(const struct mr_nic *nic,
                             uint64_t *timeout_ns);

/**
 * An empty set: the next PSN expected is 0.
 */
int32_t mr_psn_set_init(struct mr_psn_set *set);

/**
 * A data packet arrived, transmission number `tsn`, `ce` not 0 if it was marked. Returns one of `enum mr_arrival`.
 */
int32_t mr_psn_set_insert(struct mr_psn_set *set,
                          uint64_t now_ns,
                          uint32_t psn,
                          uint32_t tsn,
                          uint8_t ce);

/**
 * What an acknowledgment of this path says at a time: the next PSN expected, the 256-bit vector, the newest transmission and the counts.
 */
int32_t mr_psn_set_block(struct mr_psn_set *set,
                         uint64_t now_ns,
                         uint8_t path,
                         uint32_t hint_mbps,
                         struct mr_ack_block *block);

/**
 * Runs a scenario: its text in TOML (docs/scenarios.md; it cannot name other files), a seed, and `count` settings such as "fabric.planes=4"
 * that take the place of what it says. Equal ones give equal results, byte for byte. It takes as long as it takes, on a thread of its own
 * with room for the largest connections.
 *
 * The result is to be given back by `mr_sim_free`. Errors: `MR_ERROR_SCENARIO` with `mr_error_detail`, `MR_ERROR_NOT_UTF8`,
 * `MR_ERROR_SYSTEM`.
 */
int32_t mr_sim_run(const char *scenario,
                   uint64_t seed,
                   const char *const *settings,
                   size_t count,
                   struct mr_sim_result **result);

/**
 * The hash of all that happened in the run, as text. It is the result's, and lives as long.
 */
int32_t mr_sim_hash(const struct mr_sim_result *result, const char **hash);

/**
 * The summary of the run, as JSON. It is the result's, and lives as long.
 */
int32_t mr_sim_json(const struct mr_sim_result *result, const char **json);

/**
 * Gives a result back. NULL does nothing.
 */
int32_t mr_sim_free(struct mr_sim_result *result);

/**
 * The name of a counter of dropped datagrams: English, static; "unknown" from `MR_DROP_REASONS` on.
 */
const char *mr_drop_reason_name(size_t index);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* METAROCE_H */
