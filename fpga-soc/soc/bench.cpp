// Runs the system on a chip, as Verilator has translated it, cycle by cycle.
//
//   bench --tap NAME --straps N
//       one system whose Ethernet is a TAP device that is there already; its serial line is standard output
//   bench --pair --loss PERCENT --seed N --cycles N
//       two systems wired to each other: the first (192.0.2.2) goes to the second (192.0.2.3), frames are dropped on the wire; the first one's
//       serial line is standard output, the second one's goes to the file `second.serial`
//
// Each reads its ROM from `soc_rom.init` in the current folder. Ends when it is told to (SIGTERM), or after --cycles.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "Vsoc.h"
#include "verilated.h"

namespace {

using Frame = std::vector<uint8_t>;

constexpr size_t shortest = 60;  // without FCS
constexpr int gap = 12;          // bytes between frames
constexpr int look = 64;         // cycles between looks at the TAP

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "bench: %s\n", what.c_str());
    std::exit(1);
}

// The CRC-32 that ends a frame.
uint32_t fcs(const uint8_t* bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t at = 0; at < length; ++at) {
        crc ^= bytes[at];
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

// SplitMix64.
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
};

// A system and its pins.
class System {
   public:
    System(VerilatedContext* context, const char* name, uint16_t straps, FILE* serial)
        : soc_(std::make_unique<Vsoc>(context, name)), serial_(serial) {
        soc_->straps = straps;
        soc_->serial_source_ready = 1;
        soc_->serial_sink_valid = 0;
        soc_->gmii_rx_er = 0;
        soc_->sys_rst = 1;
        for (int cycle = 0; cycle < 16; ++cycle) clock();
        soc_->sys_rst = 0;
    }

    // A frame without FCS is to be received.
    void send(Frame frame) {
        if (frame.size() < shortest) frame.resize(shortest);
        uint32_t sum = fcs(frame.data(), frame.size());
        for (int byte = 0; byte < 7; ++byte) line_.push_back(0x55);
        line_.push_back(0xd5);
        line_.insert(line_.end(), frame.begin(), frame.end());
        for (int byte = 0; byte < 4; ++byte) line_.push_back(sum >> 8 * byte & 0xff);
        line_.insert(line_.end(), gap, -1);
    }

    // One cycle. Whether a frame has left; it is in `sent`.
    bool cycle(Frame& sent) {
        int byte = -1;
        if (!line_.empty()) {
            byte = line_.front();
            line_.pop_front();
        }
        soc_->gmii_rx_dv = byte >= 0;
        soc_->gmii_rx_data = byte >= 0 ? byte : 0;
        clock();
        if (soc_->serial_source_valid) {
            std::fputc(soc_->serial_source_data, serial_);
            // Zero ends each of defmt's frames.
            if (soc_->serial_source_data == 0) std::fflush(serial_);
        }
        if (soc_->gmii_tx_en) {
            leaving_.push_back(soc_->gmii_tx_data);
            return false;
        }
        return !leaving_.empty() && take(sent);
    }

   private:
    void clock() {
        soc_->sys_clk = 0;
        soc_->eval();
        soc_->sys_clk = 1;
        soc_->eval();
    }

    // What has left, without preamble and FCS, if it is whole.
    bool take(Frame& sent) {
        Frame raw;
        raw.swap(leaving_);
        size_t start = 0;
        while (start < raw.size() && raw[start] == 0x55) ++start;
        if (start + 1 + shortest + 4 > raw.size() || raw[start] != 0xd5) fail("a frame without preamble, or too short");
        const uint8_t* bytes = raw.data() + start + 1;
        size_t length = raw.size() - start - 1 - 4;
        uint32_t sum = 0;
        for (int byte = 0; byte < 4; ++byte) sum |= uint32_t(bytes[length + byte]) << 8 * byte;
        if (sum != fcs(bytes, length)) fail("a frame with a wrong FCS");
        sent.assign(bytes, bytes + length);
        return true;
    }

    std::unique_ptr<Vsoc> soc_;
    FILE* serial_;
    std::deque<int> line_;  // bytes that are to be received; -1: none
    Frame leaving_;
};

int open_tap(const std::string& name) {
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (tap < 0) fail("/dev/net/tun: " + std::string(std::strerror(errno)));
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(tap, TUNSETIFF, &request) < 0) fail("TAP " + name + ": " + std::strerror(errno));
    return tap;
}

void run_tap(VerilatedContext* context, const std::string& name, uint16_t straps, uint64_t cycles) {
    int tap = open_tap(name);
    System system(context, "soc", straps, stdout);
    Frame frame;
    for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
        if (system.cycle(frame) && write(tap, frame.data(), frame.size()) < 0) fail("TAP: " + std::string(std::strerror(errno)));
        if (cycle % look == 0) {
            uint8_t buffer[2048];
            ssize_t length = read(tap, buffer, sizeof buffer);
            if (length > 0) system.send(Frame(buffer, buffer + length));
        }
    }
}

void run_pair(VerilatedContext* context, double loss, uint64_t seed, uint64_t cycles) {
    FILE* second_serial = std::fopen("second.serial", "wb");
    if (!second_serial) fail("second.serial: " + std::string(std::strerror(errno)));
    System first(context, "first", 3 << 8 | 2, stdout);
    System second(context, "second", 3, second_serial);
    Random random{seed};
    uint64_t frames = 0, dropped = 0;
    Frame frame;
    auto pass = [&](System& to) {
        ++frames;
        if (double(random.next() >> 11) * 0x1p-53 * 100 < loss) {
            ++dropped;
        } else {
            to.send(frame);
        }
        // For whoever wants to know whether enough was dropped.
        std::fprintf(stderr, "frames %lu dropped %lu\n", (unsigned long)frames, (unsigned long)dropped);
    };
    for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
        if (first.cycle(frame)) pass(second);
        if (second.cycle(frame)) pass(first);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string tap;
    bool pair = false;
    uint16_t straps = 2;
    double loss = 0;
    uint64_t seed = 1, cycles = ~0ull;
    for (int at = 1; at < argc; ++at) {
        std::string word = argv[at];
        auto value = [&]() -> std::string {
            if (++at == argc) fail(word + ": a value is missing");
            return argv[at];
        };
        if (word == "--tap") tap = value();
        else if (word == "--pair") pair = true;
        else if (word == "--straps") straps = uint16_t(std::stoul(value()));
        else if (word == "--loss") loss = std::stod(value());
        else if (word == "--seed") seed = std::stoull(value());
        else if (word == "--cycles") cycles = std::stoull(value());
        else fail("unknown option " + word);
    }
    VerilatedContext context;
    if (pair) {
        run_pair(&context, loss, seed, cycles);
    } else if (!tap.empty()) {
        run_tap(&context, tap, straps, cycles);
    } else {
        fail("--tap NAME or --pair");
    }
    return 0;
}
