#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/pickle.h"
#include "data/zip.h"
#include "naru/device/virtual.h"
#include "naru/io/checkpoint.h"
#include "naru/nn.h"
#include "naru/ops.h"

namespace naru {
namespace {

struct TempFile {
  std::string path = testing::TempDir() + "naru_files_test.pt";
  ~TempFile() { std::filesystem::remove(path); }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

Value again(const Value& v) { return load_from_bytes(save_to_bytes(v)); }

TEST(Values, WhatIsSavedIsLoadedAgain) {
  const Value v = Value::Dict{{"none", {}},
                              {"yes", true},
                              {"small", 3},
                              {"negative", -70000},
                              {"large", INT64_MIN},
                              {"real", 0.1},
                              {"text", "h\u00e9"},
                              {"bytes", Value::bytes(std::string("\0\xff z", 4))},
                              {7, Value::List{1, "two", Value::tuple({3.0, {}})}},
                              {"empty", Value::Dict()}};
  const Value w = again(v);
  EXPECT_EQ(w.size(), 10u);
  EXPECT_TRUE(w["none"].is_none());
  EXPECT_TRUE(w["yes"].to_bool());
  EXPECT_EQ(w["small"].to_int(), 3);
  EXPECT_EQ(w["negative"].to_int(), -70000);
  EXPECT_EQ(w["large"].to_int(), INT64_MIN);
  EXPECT_EQ(w["real"].to_double(), 0.1);
  EXPECT_EQ(w["text"].text(), "h\u00e9");
  EXPECT_EQ(w["bytes"].kind(), Value::Kind::Bytes);
  EXPECT_EQ(w["bytes"].text(), std::string("\0\xff z", 4));
  EXPECT_EQ(w[7][2].kind(), Value::Kind::Tuple);
  EXPECT_EQ(w[7.0][-1][0].to_double(), 3.0);  // as in Python, the keys 7.0 and 7 are equal
  EXPECT_EQ(w["empty"].size(), 0u);
}

TEST(Values, AMetaTensorIsSavedWithoutElements) {
  const Tensor t = empty({4, 6}, Options(DType::F64, Device("meta"))).t().detach().requires_grad_();
  const Tensor got = again(t).tensor();
  EXPECT_EQ(got.device(), Device("meta"));
  EXPECT_EQ(got.sizes(), t.sizes());
  EXPECT_EQ(got.strides(), t.strides());
  EXPECT_EQ(got.dtype(), DType::F64);
  EXPECT_TRUE(got.requires_grad());
}

TEST(Values, WhatIsNotThereIsAnErrorThatNamesWhatIs) {
  const Value v = Value::Dict{{"a", 1}, {"b", "text"}};
  try {
    v["c"];
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_NE(std::string(e.what()).find("'a', 'b'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(v["b"].to_int(), TypeError);
  EXPECT_THROW(v["a"].tensor(), TypeError);
  EXPECT_THROW(v["a"]["x"], TypeError);
  EXPECT_THROW(Value(Value::List{1})[1], IndexError);
  EXPECT_THROW(Value(1).push_back(2), TypeError);
  EXPECT_THROW(v.named_tensors(), TypeError);
}

TEST(Values, ACopySharesWhatAListHolds) {
  Value a = Value::List{1};
  Value b = a;
  b.push_back(2);
  EXPECT_EQ(a.size(), 2u);
}

TEST(Files, TensorsKeepTypeShapeStridesAndWhatTheyShare) {
  const Tensor base = arange(0, 12, 1, Options(DType::F32)).view({3, 4});
  Value::List list{base, base.t(), base[1], tensor(3.5), empty({0, 2}), tensor({true, false}), tensor({1, 2}).to(DType::BF16)};
  const Value w = again(list);
  ASSERT_EQ(w.size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor &a = list[i].tensor(), b = w[i].tensor();
    EXPECT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(a.sizes(), b.sizes());
    EXPECT_EQ(a.strides(), b.strides());
    EXPECT_TRUE(equal(a, b)) << i;
  }
  w[0].tensor().fill_(7);
  EXPECT_TRUE(equal(w[2].tensor(), full({4}, 7.0)));
  EXPECT_TRUE(again(ones({2}).requires_grad_()).tensor().requires_grad());
}

TEST(Files, AFileIsMappedAndItsBytesStayAsTheyAre) {
  const TempFile file;
  save(ones({1000}), file.path);
  const std::string before = read_file(file.path);
  const Tensor t = load(file.path).tensor();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0u);
  t.fill_(2);
  EXPECT_EQ(read_file(file.path), before);
  save(zeros({5}), file.path);  // a new file replaces the old one
  EXPECT_EQ(t.sum().item<double>(), 2000);
}

TEST(Files, ListsAndDictsOfTensorsAreReadIntoVariables) {
  const TempFile file;
  save(std::vector<Tensor>{ones({2}), zeros({3})}, file.path);
  std::vector<Tensor> list;
  load(list, file.path);
  EXPECT_EQ(list.size(), 2u);
  save(ones({4}), file.path);
  Tensor t;
  load(t, file.path);
  EXPECT_EQ(t.numel(), 4);
  save(std::map<std::string, Tensor>{{"x", t}}, file.path);
  EXPECT_EQ(load(file.path).named_tensors()[0].first, "x");
}

TEST(Files, ATensorGoesToTheDeviceAskedForOrWhereItWasOrToTheHost) {
  const VirtualDevices two(DeviceType::Cuda, parse_virtual_options("", 2));
  const Device cuda("cuda:1");
  const std::string bytes = save_to_bytes(ones({2}, cuda));
  EXPECT_EQ(load_from_bytes(bytes).tensor().device(), cuda);
  EXPECT_EQ(load_from_bytes(bytes, Device("cpu")).tensor().device(), Device("cpu"));
  std::string elsewhere = bytes;
  elsewhere.replace(elsewhere.find("cuda:1"), 6, "cuda:9");
  EXPECT_THROW(load_from_bytes(elsewhere), RuntimeError);  // wrong checksum
  const std::string pickle = data::pickle(Value(3)).text;
  EXPECT_EQ(data::unpickle(pickle, {}).to_int(), 3);
}

TEST(Files, AModelIsReadIntoAnotherOne) {
  const TempFile file;
  nn::Sequential a(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)), b(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  save(a, file.path);
  load(b, file.path);
  const Tensor x = randn({5, 3});
  EXPECT_TRUE(equal(a(x), b(x)));
  const auto shared = std::make_shared<nn::Linear>(3, 4);
  EXPECT_THROW(load(shared, file.path), RuntimeError);  // different names
  save(shared, file.path);
  EXPECT_EQ(load(file.path).named_tensors().size(), 2u);
}

template <class O, class... A>
void goes_on(const char* name, A... settings) {
  const auto x = randn({8, 3}), y = randn({8, 1});
  const auto steps = [&](nn::Linear& m, optim::Optimizer& o, int n) {
    for (int i = 0; i < n; ++i) {
      o.zero_grad();
      nn::functional::mse_loss(m(x), y).backward();
      o.step();
    }
  };
  nn::Linear a(3, 1), b(3, 1);
  b.load_state_dict(a.state_dict());
  O whole(a.parameters(), settings...), first(b.parameters(), settings...);
  whole.set_lr(0.02), first.set_lr(0.02);
  steps(a, whole, 6);
  steps(b, first, 3);
  O second(b.parameters());
  load_state(second, again(state_of(first)));
  EXPECT_EQ(second.lr(), 0.02) << name;
  steps(b, second, 3);
  EXPECT_EQ(a.weight.to_doubles(), b.weight.to_doubles()) << name;
}
struct PlainSGD : optim::SGD {
  explicit PlainSGD(std::vector<Tensor> params, SgdOptions o = {}) : SGD(std::move(params), o) {}
};

TEST(Files, EachOptimizerGoesOnWithItsSettings) {
  goes_on<PlainSGD>("SGD", SgdOptions{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  goes_on<optim::Adam>("Adam", AdamOptions{.beta1 = 0.8, .amsgrad = true});
  goes_on<optim::AdamW>("AdamW", AdamOptions{.eps = 1e-6, .weight_decay = 0.1});
  goes_on<optim::RMSprop>("RMSprop", optim::RmspropOptions{.momentum = 0.5, .centered = true});
  goes_on<optim::Adagrad>("Adagrad", optim::AdagradOptions{.lr_decay = 0.1});
  goes_on<optim::Adadelta>("Adadelta", optim::AdadeltaOptions{.rho = 0.8});
  goes_on<optim::Adamax>("Adamax", optim::AdamaxOptions{.beta2 = 0.9});
  goes_on<optim::NAdam>("NAdam", optim::NadamOptions{.momentum_decay = 0.01});
}

TEST(Files, GroupsKeepTheirSettingsAndBadOnesChangeNothing) {
  Tensor p = ones({2}).requires_grad_(), q = ones({3}).requires_grad_();
  using Group = optim::Group<SgdOptions>;
  optim::SGD a(std::vector<Group>{{{p}, SgdOptions{.lr = 0.1}}, {{q}, SgdOptions{.lr = 0.2, .momentum = 0.5}}}, SgdOptions{});
  optim::SGD b(std::vector<Group>{{{p}}, {{q}}}, SgdOptions{});
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.lr(1), 0.2);
  EXPECT_EQ(b.momentum(1), 0.5);
  optim::SGD one({p, q}, 0.3);
  EXPECT_THROW(load_state(one, state_of(a)), ValueError);
  Value bad = again(state_of(a));
  Value group = bad["param_groups"][1];
  group.insert("lr", -1);
  EXPECT_THROW(load_state(b, bad), ValueError);
  EXPECT_EQ(b.lr(0), 0.1);
  group.insert("lr", Value::tuple({1, 2}));
  EXPECT_THROW(load_state(b, bad), ValueError);
}

std::string with_pickle(const std::string& pickle) {
  std::string all;
  data::ZipWriter zip([&](std::string_view part) { all += part; });
  zip.add("a/data.pkl", pickle);
  zip.add("a/version", "3\n");
  zip.finish();
  return all;
}

TEST(Files, AFileThatIsNoDataIsAnError) {
  const auto refused = [](const std::string& pickle) {
    try {
      load_from_bytes(with_pickle(pickle));
    } catch (const RuntimeError&) {
      return true;
    } catch (const ValueError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused("\x80\x02K\x01."));
  for (const std::string& pickle : std::initializer_list<std::string>{"",
                                                                      "K",
                                                                      ".",
                                                                      "(.",
                                                                      "\x80\x02K\x01K\x02.",
                                                                      std::string("cos\nsystem\n(X\x02\0\0\0lstR.", 21),
                                                                      "cos\nsystem\n.",
                                                                      "ccollections\nOrderedDict\n.",
                                                                      std::string("]q\0h\0a.", 6),             // a list that holds itself
                                                                      std::string("]q\0\x85h\0\x85\x61.", 8),  // appended to a tuple
                                                                      std::string("]q\0]q\x01h\0ah\0h\x01"
                                                                                  "a0.",
                                                                                  14),  // two that contain each other
                                                                      "}(]K\x01u.",     // a list as a key
                                                                      std::string(2000, ']') + std::string(1999, 'a') + ".",
                                                                      std::string(3000, '(') + std::string(3000, 't') + ".",
                                                                      "X\xff\xff\xff\x7fz.",
                                                                      "h\x05.",
                                                                      "\x8a\x09",
                                                                      "N}b.",
                                                                      "(K\x01K\x02K\x03K\x04K\x05tQ.",
                                                                      "R.",
                                                                      "0.",
                                                                      "1.",
                                                                      "t.",
                                                                      "e."})
    EXPECT_TRUE(refused(pickle)) << pickle.substr(0, 40);
}

// Shared objects are not copied for each reference.
TEST(Files, TuplesOfTuplesAreMadeOnce) {
  std::string pickle("K\x01q\0", 4);
  for (int i = 0; i < 100; ++i) pickle += std::string("0h\0h\0\x86q\0", 8);  // a pair of the previous tuple
  Value v = load_from_bytes(with_pickle(pickle + "."));
  for (int i = 0; i < 100; ++i) v = Value(v[i % 2]);
  EXPECT_EQ(v.to_int(), 1);
}

TEST(Files, EachDamagedByteIsNoticed) {
  const std::string good = save_to_bytes(Value::Dict{{"x", arange(0, 5)}, {"y", 2.5}});
  const Value was = load_from_bytes(good);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      try {
        const Value v = load_from_bytes(bad);  // an unused byte: a time, padding
        ASSERT_EQ(v["x"].tensor().to_ints(), was["x"].tensor().to_ints()) << i;
        ASSERT_EQ(v["y"].to_double(), 2.5) << i;
      } catch (const Error&) {
      }
    }
    EXPECT_THROW(load_from_bytes(good.substr(0, i)), Error) << i;
  }
}

TEST(Files, ThereAreMoreRecordsThanSixteenBitsCount) {
  std::string all;
  data::ZipWriter zip([&](std::string_view part) { all += part; });
  for (int i = 0; i < 70000; ++i) zip.add("a/" + std::to_string(i), "x");
  zip.finish();
  EXPECT_EQ(data::ZipReader(all).records().size(), 70000u);
}

TEST(Files, AnErrorLeavesTheOldFile) {
  const TempFile file;
  save(1, file.path);
  EXPECT_THROW(save("\xff", file.path), ValueError);
  Value deep = 1;
  for (int i = 0; i < 2000; ++i) deep = Value::List{deep};
  EXPECT_THROW(save(deep, file.path), ValueError);
  EXPECT_EQ(load(file.path).to_int(), 1);
  EXPECT_THROW(save(1, "/nonexistent/file.pt"), RuntimeError);
  EXPECT_THROW(load("/nonexistent/file.pt"), RuntimeError);
}

}  // namespace
}  // namespace naru
