// Command pause does nothing, until it's told to end: it holds the namespaces that the containers
// of a Pod share, as the first process of the Pod.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
}
