// SPDX-License-Identifier: BSD-2-Clause
//
// One function burns CPU, another asks the kernel for too much. A sampling profiler blames
// hashNumbers; a syscall summary shows 60,000 small writes. Both are right.
//
//	go build -o slow slow.go && ./slow
//
// Ground truth: hashNumbers has at least 1.5 times the CPU time of writeLines (callees included);
// exactly 60,000 write calls go to temporary files (three rounds of 20,000 lines, one unbuffered
// write each).
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

const (
	rounds  = 3
	numbers = 2_000_000
	lines   = 20_000
)

type record struct {
	N int `json:"n"`
}

func hashNumbers() string {
	digest := sha256.New()
	for n := 0; n < numbers; n++ {
		digest.Write([]byte(strconv.Itoa(n)))
	}
	return fmt.Sprintf("%x", digest.Sum(nil))
}

func writeLines() error {
	file, err := os.CreateTemp("", "slow")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	for n := 0; n < lines; n++ {
		line, err := json.Marshal(record{n})
		if err != nil {
			return err
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	for round := 0; round < rounds; round++ {
		fmt.Println(hashNumbers())
		if err := writeLines(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
