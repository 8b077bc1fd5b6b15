#include "distributed/mpi_world.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "distributed/pmi.h"
#include "naru/distributed/group.h"
#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"
#include "runtime/os/system.h"

namespace naru::distributed {
namespace {

// How long a rank may be silent before the others take it for lost.
constexpr Milliseconds kPatience{8000};
// After a rank is lost, what it had sent may still arrive: it is waited for until MPI's thread has looked a few times, or, if that hangs, kMostSettle.
constexpr Milliseconds kSettle{200}, kMostSettle{700};
constexpr uint64_t kSettlePasses = 3;
// A rank that is lost so soon after another has probably ended because of it.
constexpr Milliseconds kSameCause{2000};
// How long MPI's thread asks without sleeping, and then sleeps between two questions.
constexpr std::chrono::microseconds kSpin{20}, kLeastNap{10}, kNapWhileAwaited{50}, kNap{500};
constexpr Milliseconds kStop{2000};
constexpr const char* kInstall =
    "pip install 'mpich>=5.0.2,<6' brings one (13 MB), and NARU_MPI names one of a site's own, which must have the standard ABI of MPI 5";

// The one of this process.
struct TheWorld {
  std::mutex mutex;
  MpiWorld* world = nullptr;
  bool failed = false;
};
TheWorld& the_world() {
  static auto& one = *new TheWorld;
  return one;
}

Milliseconds patience() {
  const char* const text = std::getenv("NARU_HEARTBEAT_SECONDS");
  if (!text || !*text) return kPatience;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end || !(seconds >= 0) || seconds > 1e6)
    throw ValueError("NARU_HEARTBEAT_SECONDS must be a number of seconds, or 0 for no limit, got \"{}\"", text);
  return Milliseconds(static_cast<int64_t>(seconds * 1000));
}

// What MPI reads when it starts, unless the program's user has set it.
void set_mpi_environment() {
  // MPICH has two ways to networks. Through UCX, a send to a rank that has ended may crash; libfabric reports an error.
  ::setenv("MPIR_CVAR_CH4_NETMOD", "ofi", 0);
  // naru answers by PMI-1, also where mpirun or srun has left variables of another protocol.
  ::setenv("MPIR_CVAR_PMI_VERSION", "1", 0);
  // The network interface that the program has named is MPI's, too.
  const char* name = std::getenv("GLOO_SOCKET_IFNAME");
  if (!name) name = std::getenv("NCCL_SOCKET_IFNAME");
  if (!name) return;
  for (const char* variable : {"UCX_NET_DEVICES", "FI_TCP_IFACE"}) ::setenv(variable, name, 0);
}

// Removes the names of shared memory that MPI has in /dev/shm, once all ranks have mapped it: so nothing is left if they are killed.
void unlink_shared_memory() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/dev/shm/");
    if (at != std::string::npos && line.find("mpich", at) != std::string::npos && !line.ends_with("(deleted)"))
      ::unlink(line.substr(at).c_str());
  }
}

bool is_mapped(const std::string& path) {
  std::error_code none;
  for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (line.ends_with(path)) return true;
  }
  return false;
}

// The same where MPI has failed to start: it may have unmapped what it has not removed. since: when the start began.
void remove_shared_memory_of_failed_start(time_t since) {
  unlink_shared_memory();
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string path = file.path().string();
    struct stat known {};
    if (file.path().filename().string().starts_with("mpich_shm_") && ::stat(path.c_str(), &known) == 0 && known.st_uid == ::getuid() &&
        known.st_mtime >= since && !is_mapped(path))
      ::unlink(path.c_str());
  }
}

}  // namespace

// --- start

std::string MpiWorld::obstacle(RollCall& roll) {
  std::string trouble, name;
  {
    TheWorld& one = the_world();
    const std::lock_guard lock(one.mutex);
    if (one.world) name = one.world->name_;
    if (one.world && one.world->generation_ != runtime::fork_generation())
      trouble = "its process was forked from one that uses MPI. Fork ranks before MPI starts, or start them by \"spawn\"";
    else if (one.failed)
      trouble = "MPI has failed in its process, and can't be started twice";
    else if (const std::string& text = mpi_library().trouble; !text.empty())
      trouble = text + ". " + kInstall;
  }
  const std::vector<std::string> said = roll.all("mpi/can", name + "\n" + trouble);
  for (int r = 0; r < roll.size(); ++r) {
    const std::string& text = said[static_cast<size_t>(r)];
    const size_t end = text.find('\n');
    if (end + 1 < text.size()) return "rank " + std::to_string(r) + " can't use MPI: " + text.substr(end + 1);
    if (text.substr(0, end) != said[0].substr(0, said[0].find('\n')))
      return "rank " + std::to_string(r) +
             " has not started MPI together with rank 0, and a process can start it only once. Let the first group " +
             "by MPI be that of all ranks (init_process_group(\"mpi\"))";
  }
  return "";
}

MpiWorld& MpiWorld::join(RollCall& roll, Mesh& mesh) {
  TheWorld& one = the_world();
  const std::lock_guard lock(one.mutex);
  if (!one.world) {
    one.failed = true;
    auto* const made = new MpiWorld(roll, mesh);  // its threads may hang, so it is never destroyed
    const time_t since = std::time(nullptr) - 1;
    try {
      made->start(roll, mesh.hosts());
    } catch (...) {
      remove_shared_memory_of_failed_start(since);
      made->watch_.reset();  // so the others learn of it
      throw;
    }
    one.failed = false;
    one.world = made;
  }
  roll.set_look([world = one.world] { world->look(); });
  return *one.world;
}

void MpiWorld::look() const {
  for (int r = 0; r < size_; ++r)
    if (lost(r)) {
      const auto [cause, why] = cause_of_loss(r);
      throw DistBackendError("rank {} is gone: {}", cause, why);
    }
}

MpiWorld::MpiWorld(RollCall& roll, Mesh& mesh)
    : mpi_(mpi_library()),
      rank_(roll.rank()),
      size_(roll.size()),
      generation_(runtime::fork_generation()),
      losses_(static_cast<size_t>(roll.size())) {
  const std::vector<std::string>& hosts = mesh.hosts();
  const auto here = std::ranges::count(hosts, hosts[static_cast<size_t>(rank_)]);
  crowd_ = std::max(1, static_cast<int>(here) / runtime::system::processors());
  name_ = roll.of_first("mpi/name", std::to_string(random_token()));
  watch_ = std::make_unique<Watch>(
      mesh.connect_to_first(0), rank_, patience(), [this](int lost, const std::string& why, bool in_order) { lose(lost, why, in_order); },
      [this] { settle_losses(); });
}

void MpiWorld::start(RollCall& roll, const std::vector<std::string>& hosts) {
  roll.set_look([this] { look(); });
  Pmi pmi(roll.store(), rank_, hosts, roll.of_first("pmi/name", "naru_" + std::to_string(random_token())));
  pmi.set_environment();
  set_mpi_environment();
  thread_ = std::thread([this] { run(); });
  on_exit([](int status, void* self) { static_cast<MpiWorld*>(self)->stop_at_exit(status); }, this);
  const runtime::InterruptWatch interrupts;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (state_ == State::Running) break;
      if (state_ == State::Failed) throw DistBackendError("MPI can't be started: {}", trouble_);
    }
    look();
    if (Clock::now() >= roll.deadline()) throw DistNetworkError("MPI did not start in time on rank {}", rank_);
    if (interrupts.interrupted()) throw runtime::Interrupted("the start of MPI was interrupted");
    pmi.serve(20);
  }
  Pmi::clear_environment();
  roll.all("mpi/up", "");
  unlink_shared_memory();
}

std::vector<int> MpiWorld::ranks_of(RollCall& roll) const {
  std::vector<int> ranks;
  for (const std::string& text : roll.all("mpi/rank", std::to_string(rank_))) ranks.push_back(std::stoi(text));
  return ranks;
}

void MpiWorld::set_state(State state, const std::string& text) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  if (!text.empty()) trouble_ = text;
  changed_.notify_all();
}

// First by a session, because its errors are returned: those of MPI_Init would end the process. Then by MPI_Init, because errors that belong
// to no communicator go to that of the world, and without one they would end the process.
bool MpiWorld::start_library() {
  MpiHandle session = nullptr, group = nullptr, comm = nullptr;
  int rank = -1, size = -1, given = 0;
  int error = mpi_.MPI_Session_init(mpi_info_null(), mpi_errors_return(), &session);
  if (error == kMpiSuccess) error = mpi_.MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  if (error == kMpiSuccess) error = mpi_.MPI_Comm_create_from_group(group, "naru", mpi_info_null(), mpi_errors_return(), &comm);
  if (error == kMpiSuccess) error = mpi_.MPI_Init_thread(nullptr, nullptr, kMpiThreadFunneled, &given);
  for (const MpiHandle each : {mpi_world(), mpi_self()})
    if (error == kMpiSuccess) error = mpi_.MPI_Comm_set_errhandler(each, mpi_errors_return());
  if (error == kMpiSuccess) error = mpi_.MPI_Comm_rank(mpi_world(), &rank);
  if (error == kMpiSuccess) error = mpi_.MPI_Comm_size(mpi_world(), &size);
  if (error != kMpiSuccess) {
    set_state(State::Failed, mpi_.path + " says: " + mpi_.error_text(error));
    return false;
  }
  if (rank == rank_ && size == size_) return true;
  set_state(State::Failed, mpi_.path + " takes this process for rank " + std::to_string(rank) + " of " + std::to_string(size) +
                               ", and it is " + std::to_string(rank_) + " of " + std::to_string(size_) +
                               ": it does not use PMI-1 on PMI_FD");
  return false;
}

// --- MPI's thread

void MpiWorld::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // for short sleeps
  if (!start_library()) return;
  receives_.assign(kReceives, mpi_no_request());
  received_.resize(kReceives);
  indices_.resize(kReceives), statuses_.resize(kReceives);
  for (size_t i = 0; i < kReceives; ++i) received_[i] = MpiBuffer(MpiBuffer::kAll), receive(i);
  set_state(State::Running);
  auto last_moved = Clock::now();
  for (;;) {
    const uint32_t before = bell_.count();
    bool moved = send_posted();
    moved |= receive_some();
    moved |= finish_sends();
    pass_.fetch_add(1, std::memory_order_release);
    if (failed_) break;
    if (moved)
      last_moved = Clock::now();
    else if (stopping_ && (sends_.empty() || broken_ || Clock::now() - last_moved > kStop / 2))
      break;
    else
      rest(last_moved, before);
  }
  set_state(State::Stopped);
}

void MpiWorld::rest(Clock::time_point last_moved, uint32_t before) {
  const auto idle = Clock::now() - last_moved;
  if (crowd_ == 1 && idle < kSpin) {
    if (runtime::system::processors() < 4) ::sched_yield();
    return;
  }
  const auto most = (waiting_.load(std::memory_order_relaxed) ? kNapWhileAwaited : kNap) * crowd_;
  bell_.sleep(before, std::clamp<std::chrono::nanoseconds>(idle / 8, kLeastNap, most));
}

bool MpiWorld::send_posted() {
  {
    const std::lock_guard lock(posted_mutex_);
    if (posted_.empty()) return false;
    sending_.swap(posted_);
  }
  for (Posted& p : sending_) {
    if (losses_[static_cast<size_t>(p.to)].told) {
      count_sent();
      continue;
    }
    MpiHandle request = mpi_no_request();
    const int error = mpi_.MPI_Isend(p.buffer.all(), static_cast<int>(p.buffer.used()), mpi_byte(), p.to, 0, mpi_world(), &request);
    if (error != kMpiSuccess) {
      fail("sending to rank " + std::to_string(p.to), error);
      continue;
    }
    sends_.push_back(request);
    sent_.push_back(std::move(p.buffer));
  }
  sending_.clear();
  return true;
}

bool MpiWorld::finish_sends() {
  if (sends_.empty()) return false;
  indices_.resize(std::max(sends_.size(), kReceives)), statuses_.resize(indices_.size());
  int completed = 0;
  const int error = mpi_.MPI_Testsome(static_cast<int>(sends_.size()), sends_.data(), &completed, indices_.data(), statuses_.data());
  if (error != kMpiSuccess) fail("sending", error);
  if (completed == kMpiUndefined || completed <= 0) return false;
  for (int i = 0; i < completed; ++i) {
    const auto index = static_cast<size_t>(indices_[static_cast<size_t>(i)]);
    give(std::move(sent_[index]));
    count_sent();
    sends_[index] = mpi_no_request();
  }
  size_t kept = 0;
  for (size_t i = 0; i < sends_.size(); ++i) {
    if (sends_[i] == mpi_no_request()) continue;
    if (kept != i) sends_[kept] = sends_[i], sent_[kept] = std::move(sent_[i]);
    ++kept;
  }
  sends_.resize(kept), sent_.resize(kept);
  return true;
}

void MpiWorld::count_sent() {
  if (unsent_.fetch_sub(1, std::memory_order_seq_cst) == 1 && tells_when_sent_.exchange(false, std::memory_order_seq_cst)) tell_ports();
}

bool MpiWorld::all_sent() noexcept {
  if (unsent_.load(std::memory_order_seq_cst) == 0 || failed_ || broken_) return true;  // it won't be, then
  tells_when_sent_.store(true, std::memory_order_seq_cst);
  return unsent_.load(std::memory_order_seq_cst) == 0;
}

void MpiWorld::tell_ports() {
  const std::lock_guard lock(ports_mutex_);
  for (const auto& [number, port] : ports_) port->changed();
}

void MpiWorld::receive(size_t index) {
  const int error = mpi_.MPI_Irecv(received_[index].all(), static_cast<int>(MpiBuffer::kAll), mpi_byte(), kMpiAnySource, kMpiAnyTag,
                                   mpi_world(), &receives_[index]);
  if (error != kMpiSuccess) fail("receiving", error);
}

bool MpiWorld::receive_some() {
  int completed = 0;
  const int error = mpi_.MPI_Testsome(static_cast<int>(kReceives), receives_.data(), &completed, indices_.data(), statuses_.data());
  if (error != kMpiSuccess) fail("receiving", error);
  if (completed == kMpiUndefined || completed <= 0) return false;
  for (int i = 0; i < completed; ++i) {
    const auto index = static_cast<size_t>(indices_[static_cast<size_t>(i)]);
    const MpiStatus& status = statuses_[static_cast<size_t>(i)];
    int bytes = 0;
    if ((error == kMpiErrorInStatus && status.error != kMpiSuccess) || mpi_.MPI_Get_count(&status, mpi_byte(), &bytes) != kMpiSuccess)
      continue;
    hand_over(index, status.source, static_cast<size_t>(bytes));
    receive(index);
  }
  return true;
}

// Gives the buffer away, and leaves another in its place.
void MpiWorld::hand_over(size_t index, int from, size_t bytes) {
  constexpr size_t kCopied = 4096;  // what is so small is copied, and does not occupy a large buffer
  MpiBuffer& here = received_[index];
  if (from < 0 || from >= size_ || bytes < sizeof(MpiHead) || here.used() != bytes) return;
  losses_[static_cast<size_t>(from)].last_pass.store(pass_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  MpiBuffer given;
  if (bytes <= kCopied) {
    given = MpiBuffer(bytes);
    std::copy_n(here.all(), bytes, given.all());
  } else {
    given = std::exchange(here, take());
  }
  const std::lock_guard lock(ports_mutex_);
  const auto port = ports_.find(given.head().stream);
  if (port != ports_.end()) return port->second->arrived(from, std::move(given));
  // The group was destroyed here.
  if (given.head().kind == MpiHead::Last) post(from, {given.head().stream, given.head().at, MpiHead::Taken, 0, 0});
}

// --- what other threads call

MpiBuffer MpiWorld::take() {
  {
    const std::lock_guard lock(free_mutex_);
    if (!free_.empty()) {
      MpiBuffer last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
  }
  return MpiBuffer(MpiBuffer::kAll);
}

void MpiWorld::give(MpiBuffer buffer) {
  constexpr size_t kMostFree = 64;
  if (buffer.size() != MpiBuffer::kAll) return;
  const std::lock_guard lock(free_mutex_);
  if (free_.size() < kMostFree) free_.push_back(std::move(buffer));
}

void MpiWorld::post(int to, MpiBuffer buffer) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back({to, std::move(buffer)});
    unsent_.fetch_add(1);
  }
  bell_.ring();
}

void MpiWorld::post(int to, const MpiHead& head) {
  MpiBuffer buffer(sizeof(MpiHead) + 16);
  buffer.head() = head;
  post(to, std::move(buffer));
}

void MpiWorld::add(uint64_t number, Port& port) {
  const std::lock_guard lock(ports_mutex_);
  if (ports_.empty()) watch_->say_whether_in_a_group(true);
  ports_[number] = &port;
}

void MpiWorld::remove(uint64_t number) {
  const std::lock_guard lock(ports_mutex_);
  ports_.erase(number);
  if (ports_.empty()) watch_->say_whether_in_a_group(false);
}

// --- losses

std::pair<int, std::string> MpiWorld::cause_of_loss(int rank) const {
  const std::lock_guard lock(mutex_);
  int cause = rank;
  const auto loss = [this](int r) -> const Loss& { return losses_[static_cast<size_t>(r)]; };
  for (int r = 0; r < size_; ++r)
    if (loss(r).told && !loss(r).in_order && loss(r).at < loss(cause).at && loss(r).at > loss(rank).at - kSameCause) cause = r;
  return {cause, loss(cause).why};
}

void MpiWorld::lose(int rank, const std::string& why, bool in_order) {
  const std::lock_guard lock(mutex_);
  Loss& loss = losses_[static_cast<size_t>(rank)];
  if (loss.told) return;
  loss.in_order = in_order;
  loss.tell(why, pass_);
}

void MpiWorld::settle_losses() {
  bool any = false, broken = false;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const bool unexplained =
        failed_ && now - failed_at_ > kMostSettle && std::ranges::none_of(losses_, [](const Loss& l) { return l.told.load(); });
    for (int r = 0; unexplained && r < size_; ++r)
      if (r != rank_) losses_[static_cast<size_t>(r)].tell(trouble_, pass_);
    for (Loss& loss : losses_) {
      if (!loss.told || loss.settled) continue;
      const bool quiet = failed_ || pass_.load() >= std::max(loss.pass, loss.last_pass.load()) + kSettlePasses;
      if (now - loss.at < kMostSettle && !(quiet && now - loss.at >= kSettle)) continue;
      loss.settled.store(true, std::memory_order_release);
      any = true;
      broken |= !loss.in_order;
    }
    // After a death MPI may lose messages between those that live, so nothing more is expected of it.
    for (int r = 0; broken && r < size_; ++r) {
      Loss& loss = losses_[static_cast<size_t>(r)];
      if (r == rank_ || loss.settled) continue;
      if (!loss.told) loss.tell("MPI can't be used after the end of another", pass_);
      loss.settled.store(true, std::memory_order_release);
    }
    if (broken) broken_ = true;
  }
  if (any) tell_ports();
}

// MPI's thread ends. If a rank has died, which MPI may tell in its own way, the watch says which.
void MpiWorld::fail(const std::string& what, int error) {
  const std::lock_guard lock(mutex_);
  if (!trouble_.empty()) return;
  trouble_ = "MPI failed in " + what + ": " + mpi_.error_text(error);
  failed_at_ = Clock::now();
  failed_ = true;
}

// MPI is not finalized: that would wait for all others. If its thread does not stop, or a rank was lost, the library's own exit handlers may
// hang or crash, and are left out.
void MpiWorld::stop_at_exit(int status) noexcept {
  if (generation_ != runtime::fork_generation()) return;
  stopping_ = true;
  bell_.ring();
  std::unique_lock lock(mutex_);
  const bool stopped = changed_.wait_for(lock, kStop, [&] { return state_ == State::Stopped || state_ == State::Failed; });
  lock.unlock();
  if (stopped && state_ == State::Stopped && !broken_) {
    thread_.join();
    return;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace naru::distributed
