// Labels and radii of raw inputs, by a network that was exported to ONNX; see ../README.md.
//
//   certify MODEL.onnx INPUTS.f32 [--reject-below R]

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: it flushes denormal numbers, and takes NaN for a number"
#endif

const char* const kFormat = "unitmargin-onnx-1";
const std::size_t kBatch = 128;  // inputs evaluated at once: layers take no more memory for more

struct Options {
  std::string model, inputs;
  double reject_below = 0.0;
};

struct Network {
  Ort::Session session;
  std::vector<std::int64_t> shape{};   // of a batch; its first entry is set for each
  std::vector<std::string> classes{};  // as JSON texts, quotes included
  float low = -INFINITY, high = INFINITY;

  std::size_t size() const {  // numbers of one input
    std::size_t product = 1;
    for (std::size_t axis = 1; axis < shape.size(); ++axis)
      product *= static_cast<std::size_t>(shape[axis]);
    return product;
  }
};

struct Answer {
  std::int64_t label = -1, runner_up = -1;
  double radius = 0.0;
  std::string reason;
};

Options parse(int count, char** arguments) {
  Options options;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) != "--reject-below") {
      files.push_back(arguments[i]);
      continue;
    }
    const std::string text = ++i < count ? arguments[i] : "";
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0.0 && value < INFINITY))
      throw std::invalid_argument("--reject-below must be a finite number >= 0, got \"" + text +
                                  "\"");
    options.reject_below = value;
  }
  if (files.size() != 2)
    throw std::invalid_argument("usage: certify MODEL.onnx INPUTS.f32 [--reject-below R]");
  options.model = files[0];
  options.inputs = files[1];
  return options;
}

std::vector<char> read(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) throw std::runtime_error(file + " is no file");
  std::vector<char> bytes(std::filesystem::file_size(file));
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw std::runtime_error(file + " cannot be read");
  return bytes;
}

// The texts of a JSON list of texts, each as it is written there: they are printed as JSON again.
std::vector<std::string> json_texts(const std::string& list) {
  std::vector<std::string> texts;
  bool inside = false, escaped = false;
  for (const char letter : list) {
    if (!inside && letter == '"') texts.emplace_back();
    if (inside || letter == '"') texts.back() += letter;
    if (letter == '"' && !escaped) inside = !inside;
    escaped = letter == '\\' && !escaped;
  }
  return texts;
}

Ort::Session load(const Ort::Env& environment, const std::string& file) {
  const std::vector<char> bytes = read(file);
  try {
    return Ort::Session(environment, bytes.data(), bytes.size(), Ort::SessionOptions());
  } catch (const Ort::Exception& error) {
    throw std::runtime_error(file + " must be an ONNX file, but " + error.what());
  }
}

Network open(const Ort::Env& environment, const std::string& file) {
  Network network{load(environment, file)};
  Ort::AllocatorWithDefaultOptions allocator;
  const Ort::ModelMetadata metadata = network.session.GetModelMetadata();
  const auto stated = [&](const char* key) {
    const auto text = metadata.LookupCustomMetadataMapAllocated(key, allocator);
    return std::string(text ? text.get() : "");
  };
  if (stated("format") != kFormat)
    throw std::runtime_error(file + " must be of the format " + kFormat + ", got \"" +
                             stated("format") + "\"");
  const std::string domain = stated("domain");
  if (domain != "null") {
    double low = 0.0, high = 0.0;
    if (std::sscanf(domain.c_str(), "[%lf, %lf]", &low, &high) != 2)
      throw std::runtime_error(file + " must state a domain, got \"" + domain + "\"");
    network.low = static_cast<float>(low);  // whoever rounds inputs of the domain stays inside
    network.high = static_cast<float>(high);
  }
  network.classes = json_texts(stated("classes"));
  const Ort::TypeInfo input = network.session.GetInputTypeInfo(0);
  const auto tensor = input.GetTensorTypeAndShapeInfo();
  if (tensor.GetElementType() != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
    throw std::runtime_error(
        file + " must take inputs of float32; export it with inputs=\"float32\"");
  network.shape = tensor.GetShape();
  return network;
}

// Little-endian float32 numbers, as x86 and ARM have them in memory.
std::vector<float> read_inputs(const std::string& file, std::size_t size) {
  const std::vector<char> bytes = read(file);
  if (bytes.size() % (size * sizeof(float)) != 0)
    throw std::runtime_error(file + " must hold inputs of " + std::to_string(size) +
                             " float32 numbers, got " + std::to_string(bytes.size()) + " bytes");
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// What the network claims of `count` inputs, before any is rejected.
std::vector<Answer> claims(Network& network, float* inputs, std::size_t count) {
  network.shape[0] = static_cast<std::int64_t>(count);
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const auto x = Ort::Value::CreateTensor<float>(
      memory, inputs, count * network.size(), network.shape.data(), network.shape.size());
  const std::array<const char*, 1> given{"x"};
  const std::array<const char*, 3> asked{"label", "runner_up", "radius"};
  const auto outputs = network.session.Run(
      Ort::RunOptions(), given.data(), &x, given.size(), asked.data(), asked.size());
  std::vector<Answer> answers(count);
  for (std::size_t i = 0; i < count; ++i) {
    answers[i].label = outputs[0].GetTensorData<std::int64_t>()[i];
    answers[i].runner_up = outputs[1].GetTensorData<std::int64_t>()[i];
    answers[i].radius = outputs[2].GetTensorData<double>()[i];
  }
  return answers;
}

// Why an input has no label, or "certified": a label means that radius > reject_below.
std::string reason(const Network& network, const float* x, double radius, double reject_below) {
  const float* const end = x + network.size();
  const auto finite = [](float entry) { return std::isfinite(entry); };
  const auto inside = [&](float entry) { return entry >= network.low && entry <= network.high; };
  if (!std::all_of(x, end, finite)) return "not_finite";
  if (!std::all_of(x, end, inside)) return "outside_domain";
  if (!(radius > 0.0)) return "no_claim";
  return radius > reject_below ? "certified" : "below_threshold";
}

void print(const Answer& answer, const std::vector<std::string>& classes) {
  const bool certified = answer.reason == "certified";
  const auto number = [](std::int64_t k) { return k < 0 ? "null" : std::to_string(k); };
  const auto name = [&](std::int64_t k) { return classes.at(static_cast<std::size_t>(k)); };
  std::cout << "{\"label\":" << (certified ? number(answer.label) : "null")
            << ",\"name\":" << (certified ? name(answer.label) : "null")
            << ",\"radius\":" << answer.radius << ",\"runner_up\":" << number(answer.runner_up)
            << ",\"reason\":\"" << answer.reason << "\"}\n";
}

void certify(const Options& options) {
  const Ort::Env environment(ORT_LOGGING_LEVEL_ERROR, "certify");
  Network network = open(environment, options.model);
  std::vector<float> inputs = read_inputs(options.inputs, network.size());
  const std::size_t count = inputs.size() / network.size();
  std::cout << std::setprecision(17);  // digits that tell any two float64 numbers apart
  for (std::size_t first = 0; first < count; first += kBatch) {
    float* x = inputs.data() + first * network.size();
    for (Answer& answer : claims(network, x, std::min(kBatch, count - first))) {
      answer.reason = reason(network, x, answer.radius, options.reject_below);
      print(answer, network.classes);
      x += network.size();
    }
  }
  if (!std::cout.flush()) throw std::runtime_error("the answers cannot be written");
}

int main(int count, char** arguments) {
  try {
    certify(parse(count, arguments));
  } catch (const std::exception& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::cerr << "certify: " << line << "\n";
    return 2;
  }
  return 0;
}
