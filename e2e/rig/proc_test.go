package rig_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func pidString(pid int) string { return strconv.Itoa(pid) }

// alive returns those of the processes that still run. One that nobody has waited for doesn't.
func alive(pids []string) []string {
	var left []string
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil || pid <= 1 {
			panic("no process id: " + s)
		}
		stat, _ := os.ReadFile("/proc/" + s + "/stat")
		zombie := strings.Contains(string(stat), ") Z ")
		if !zombie && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			left = append(left, s)
		}
	}
	return left
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
