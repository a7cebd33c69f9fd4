// Llama-2-7B's matrix products end to end: query, pack, mmt4d, unpack, each step checked and timed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "bench/llama_report.h"
#include "bench/machine.h"
#include "bench/packed_product.h"
#include "bench/threads.h"

namespace uk::bench {
namespace {

constexpr int kExitFailed = 1, kExitUsage = 2, kExitNothingRan = 77;

class Runner {
 public:
  Runner(const Options& options, const Setting& setting)
      : options_(options),
        setting_(setting),
        preparers_(
            std::max(options.threads, static_cast<int>(std::thread::hardware_concurrency()))) {}

  // Makes the tensors of a product for all M and packs the weights. What went wrong, or
  // UK_STATUS_OK, comes back with every row.
  void prepare(const Product& product, const Type& type);
  Row run(int64_t m);

 private:
  // time_calls for calls that can fail.
  template <class Call>
  Timing time(double min_seconds, uk_status_t* status, const Call& call) const {
    std::atomic<int> first_error{UK_STATUS_OK};
    const Timing timing =
        time_calls(options_.threads, options_.repeat, min_seconds, [&](int thread, int64_t index) {
          const uk_status_t returned = call(thread, index);
          if (returned != UK_STATUS_OK) first_error = returned;
        });
    *status = static_cast<uk_status_t>(first_error.load());
    return timing;
  }

  Peak measure_peak_now(const char* isa) const;
  double measure_bandwidth_now();
  char* copy(int64_t index) const { return packed_weights_.data() + index % copies_ * copy_bytes_; }
  uk_status_t measure(Row* row, const Packing& lhs);

  const Options& options_;
  const Setting& setting_;
  const int preparers_;  // threads for what is not measured
  const Product* product_ = nullptr;
  const Type* type_ = nullptr;
  uk_status_t query_status_ = UK_STATUS_OK, weights_status_ = UK_STATUS_OK;
  Packing rhs_ = {};
  size_t copy_bytes_ = 0;
  int64_t copies_ = 0, next_copy_ = 0;
  double pack_weights_rate_ = 0;
  std::string last_peak_isa_;
  Peak last_peak_ = {};
  Buffer weights_, activations_, packed_weights_, packed_activations_, packed_out_, out_;
};

Peak Runner::measure_peak_now(const char* isa) const {
  std::vector<Peak> peaks(options_.threads);
  const double sum = sum_on_threads(options_.threads, [&](int thread) {
    peaks[thread] = measure_peak(type_->mmt4d_type, isa, 0.02);
    return peaks[thread].ops_per_second;
  });
  return {peaks[0].instruction, sum};
}

// Reads the copies as mmt4d does, one after the other and split over the threads, with no
// arithmetic.
double Runner::measure_bandwidth_now() {
  const size_t blocks = copy_bytes_ / options_.threads / kReadBlock;
  double best = 0;
  for (const ReadLoop read : read_loops()) {
    const Timing timing =
        time_calls(options_.threads, options_.repeat, 0.03, [&](int thread, int64_t index) {
          read(copy(next_copy_ + index) + thread * blocks * kReadBlock, blocks);
        });
    next_copy_ += timing.calls;
    best =
        std::max(best, static_cast<double>(options_.threads * blocks * kReadBlock) / timing.median);
  }
  return best;
}

void Runner::prepare(const Product& product, const Type& type) {
  product_ = &product;
  type_ = &type;
  const int64_t max_m = *std::max_element(options_.m.begin(), options_.m.end());
  uk_tile_sizes_t sizes = {};
  query_status_ = uk_query_tile_sizes(type.mmt4d_type, 0, product.n, product.k, nullptr,
                                      options_.cpu_data, &sizes);
  if (query_status_ != UK_STATUS_OK) return;
  last_peak_isa_.clear();

  rhs_ = {product.rhs(), product.heads, sizes.n0, sizes.k0, type.pack_type};
  const int64_t weight_count = product.heads * product.n * product.k;
  const int64_t activation_count = product.heads * max_m * product.k;
  fill_random(type.rhs, weights_.reserve(weight_count * type.element_bytes), weight_count, 1,
              preparers_);
  fill_random(type.lhs, activations_.reserve(activation_count * type.element_bytes),
              activation_count, 2, preparers_);

  copy_bytes_ = rhs_.elements() * type.element_bytes;
  copies_ = std::max<int64_t>(ceil_div(setting_.weight_bytes, copy_bytes_), 2);
  next_copy_ = 0;
  packed_weights_.reserve(copies_ * copy_bytes_);
  const Timing timing = time(0.01, &weights_status_, [&](int thread, int64_t index) {
    return pack_part(rhs_, weights_.data(), copy(index), options_.cpu_data, thread,
                     options_.threads);
  });
  pack_weights_rate_ = static_cast<double>(weight_count * type.element_bytes) / timing.median;
  run_on_threads(preparers_, [&](int part) {
    for (int64_t index = timing.calls + part; index < copies_; index += preparers_) {
      std::memcpy(copy(index), copy(0), copy_bytes_);
    }
  });
}

Row Runner::run(int64_t m) {
  Row row;
  row.product = product_;
  row.type = type_;
  row.m = m;
  uk_status_t status = query_status_;
  uk_tile_sizes_t sizes = {0, static_cast<int32_t>(rhs_.tile_rows), static_cast<int32_t>(rhs_.k0)};
  if (status == UK_STATUS_OK) {
    const uk_tile_sizes_t fixed = sizes;
    status = uk_query_tile_sizes(type_->mmt4d_type, m, product_->n, product_->k, &fixed,
                                 options_.cpu_data, &sizes);
  }
  if (status == UK_STATUS_NO_TILE) {
    row.outcome = Outcome::kNoTile;
    return row;
  }
  if (status == UK_STATUS_OK) status = weights_status_;
  if (status == UK_STATUS_OK) {
    status =
        measure(&row, {product_->lhs(m), product_->heads, sizes.m0, sizes.k0, type_->pack_type});
  }
  row.reason = status == UK_STATUS_OK ? row.accuracy.mismatch : uk_status_string(status);
  row.outcome = row.reason.empty() ? Outcome::kPassed : Outcome::kFailed;
  return row;
}

uk_status_t Runner::measure(Row* row, const Packing& lhs) {
  const int64_t m = row->m, heads = product_->heads;
  const int threads = options_.threads;
  uk_mmt4d_params_t params = mmt4d_params(lhs, rhs_, type_->mmt4d_type, options_.cpu_data);
  uk_status_t status = uk_mmt4d_info(&params, &row->tile);
  if (status != UK_STATUS_OK) return status;

  char* packed_lhs = packed_activations_.reserve(lhs.elements() * type_->element_bytes);
  const Timing pack = time(0.002, &status, [&](int thread, int64_t) {
    return pack_part(lhs, activations_.data(), packed_lhs, options_.cpu_data, thread, threads);
  });
  if (status != UK_STATUS_OK) return status;

  // Old results must not pass for new ones.
  const size_t packed_out_bytes = heads * params.m * params.out_stride0 * 4;
  std::memset(packed_out_.reserve(packed_out_bytes), 0xA5, packed_out_bytes);
  const size_t out_bytes = heads * m * product_->n * 4;
  std::memset(out_.reserve(out_bytes), 0xA5, out_bytes);

  if (m == 1) row->read_bandwidth = measure_bandwidth_now();
  // Clock and memory are shared with others: what was higher, before or after, counts. The peak
  // after this row is the one before the next.
  if (last_peak_isa_ != row->tile->isa) {
    last_peak_isa_ = row->tile->isa;
    last_peak_ = measure_peak_now(row->tile->isa);
  }
  params.lhs = packed_lhs;
  params.out = packed_out_.data();
  const Timing multiply = time(0.03, &status, [&](int thread, int64_t index) {
    uk_mmt4d_params_t call = params;
    call.rhs = copy(next_copy_ + index);
    return mmt4d_part(call, heads, thread, threads);
  });
  if (status != UK_STATUS_OK) return status;
  next_copy_ += multiply.calls;

  const Result result = {heads,
                         m,
                         product_->n,
                         product_->out_head_stride(m),
                         product_->out_row_stride(),
                         type_->out_pack_type};
  const Timing unpack = time(0.002, &status, [&](int thread, int64_t) {
    return unpack_part(params, result, out_.data(), thread, threads);
  });
  if (status != UK_STATUS_OK) return status;

  const Peak peak_after = measure_peak_now(row->tile->isa);
  row->peak = peak_after.ops_per_second > last_peak_.ops_per_second ? peak_after : last_peak_;
  last_peak_ = peak_after;
  if (m == 1) row->read_bandwidth = std::max(row->read_bandwidth, measure_bandwidth_now());

  row->calls = multiply.calls;
  row->seconds = multiply.median;
  row->ops_per_second =
      2.0 * static_cast<double>(heads * m * product_->n * product_->k) / multiply.median;
  row->weight_bandwidth = static_cast<double>(copy_bytes_) / multiply.median;
  row->pack_weights = pack_weights_rate_;
  row->pack_activations =
      static_cast<double>(heads * m * product_->k * type_->element_bytes) / pack.median;
  row->unpack = static_cast<double>(out_bytes) / unpack.median;
  row->accuracy =
      check_outputs(*product_, *type_, m, activations_.data(), weights_.data(), out_.data(),
                    row->tile->numerics == UK_NUMERICS_FMA_CHAIN, preparers_);
  return UK_STATUS_OK;
}

Setting make_setting(const Options& options) {
  Setting setting;
  setting.cpu = cpu_name();
  for (size_t i = 0; const char* isa = uk_isa_level_at(i); ++i) {
    if (!uk_cpu_has_level(isa, options.cpu_data)) continue;
    setting.levels += std::string(setting.levels.empty() ? "" : ", ") + isa;
  }
  setting.cache_bytes = last_level_cache_bytes();
  setting.weight_bytes = bytes_beyond_cache();
  setting.weights_from_memory =
      setting.cache_bytes > 0 && setting.weight_bytes >= 2 * setting.cache_bytes;
  setting.memcpy_bytes_per_second = measure_memcpy(size_t{256} << 20, 0.1);
  return setting;
}

int run_all(const Options& options) {
  std::FILE* json = nullptr;
  if (options.json) {
    json = options.json_path.empty() ? stdout : std::fopen(options.json_path.c_str(), "w");
    if (!json) {
      std::fprintf(stderr, "llama_layers: cannot write %s\n", options.json_path.c_str());
      return kExitUsage;
    }
  }
  const bool show_table = json != stdout;
  const bool show_progress = isatty(STDERR_FILENO);
  const Setting setting = make_setting(options);
  if (show_table) print_header(setting, options);

  Runner runner(options, setting);
  std::vector<Row> rows;
  const size_t total = options.products.size() * options.types.size() * options.m.size();
  for (const Product* product : options.products) {
    for (const Type* type : options.types) {
      bool prepared = false;
      for (int64_t m : options.m) {
        if (show_progress) {
          std::fprintf(stderr, "\r\033[K[%zu/%zu] %s %s %s", rows.size() + 1, total, product->name,
                       type->name, product->shape(m).c_str());
        }
        if (!prepared) runner.prepare(*product, *type);
        prepared = true;
        rows.push_back(runner.run(m));
        if (show_progress) std::fputs("\r\033[K", stderr);
        if (show_table) print_row(rows.back(), setting);
      }
    }
  }

  if (show_table) print_legend(rows);
  if (json) {
    write_json(json, setting, options, rows);
    if (json != stdout) std::fclose(json);
  }
  const auto count = [&](Outcome outcome) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const Row& row) { return row.outcome == outcome; });
  };
  if (const auto failed = count(Outcome::kFailed)) {
    std::fprintf(stderr, "llama_layers: %td of %zu products FAILED\n", failed, rows.size());
    return kExitFailed;
  }
  if (count(Outcome::kPassed) == 0) {
    std::fprintf(stderr, "llama_layers: no tile for anything that was asked\n");
    return kExitNothingRan;
  }
  return 0;
}

}  // namespace
}  // namespace uk::bench

int main(int argc, char** argv) { return uk::bench::run_all(uk::bench::parse_options(argc, argv)); }
