// A product of matrices on std::vector, by the kernel of examples/gemm.tile. Errors are exceptions.

#include "gemm.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

// A matrix, row by row.
struct Matrix {
    std::int64_t rows, columns;
    std::vector<float> elements;

    Matrix(std::int64_t rows, std::int64_t columns)
        : rows(rows), columns(columns), elements(static_cast<std::size_t>(rows * columns)) {}

    float &at(std::int64_t i, std::int64_t j) { return elements[static_cast<std::size_t>(i * columns + j)]; }
};

// The message of a status, with its numbers.
std::string message(const ptoc_status &status) {
    std::string text = status.message;
    for (std::uint32_t n = 0; n < status.count; n++) {
        const std::string place = "{" + std::to_string(n) + "}";
        for (auto at = text.find(place); at != std::string::npos; at = text.find(place))
            text.replace(at, place.size(), std::to_string(status.numbers[n]));
    }
    return text;
}

Matrix multiply(const Matrix &a, const Matrix &b, std::int32_t threads) {
    if (a.columns != b.rows) throw std::invalid_argument("the matrices do not fit");
    Matrix c(a.rows, b.columns);
    std::vector<unsigned char> workspace(gemm_workspace(threads));
    ptoc_status status;
    const std::int32_t code = gemm(a.elements.data(), b.elements.data(), c.elements.data(), a.rows, a.columns, b.columns,
                                   workspace.data(), workspace.size(), threads, &status);
    if (code != 0) throw std::runtime_error(message(status));
    return c;
}

int main() {
    Matrix a(70, 90), b(90, 50);
    for (std::int64_t i = 0; i < a.rows; i++)
        for (std::int64_t k = 0; k < a.columns; k++) a.at(i, k) = static_cast<float>((i + k) % 7);
    for (std::int64_t k = 0; k < b.rows; k++)
        for (std::int64_t j = 0; j < b.columns; j++) b.at(k, j) = static_cast<float>((k * j) % 5);
    Matrix c = multiply(a, b, 2);
    float expected = 0;
    for (std::int64_t k = 0; k < a.columns; k++) expected += a.at(3, k) * b.at(k, 4);
    std::printf("C[3, 4] = %g, expected %g\n", c.at(3, 4), expected);
    return std::fabs(c.at(3, 4) - expected) < 1e-3f ? 0 : 1;
}
