package rig

import (
	"errors"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// The steps that make everything a cluster's processes need before the first of them starts.

func (c *Cluster) makeFolder() error {
	reaper, err := reap.Shared()
	if err != nil {
		return err
	}
	c.reaper = reaper
	if c.dir, err = os.MkdirTemp("", "jobferry-rig-"+c.Name()+"-"); err != nil {
		return err
	}
	if err := c.reaper.WatchDir(c.dir); err != nil {
		return err
	}
	c.logs = filepath.Join(c.dir, "logs")
	if kept := os.Getenv(LogsVariable); kept != "" {
		if c.logs, err = filepath.Abs(filepath.Join(kept, c.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(c.logs, 0o755)
}

func (c *Cluster) makePorts() error {
	wanted := []**port{&c.etcdPort, &c.peerPort, &c.apiPort}
	if c.options.FaultProxy {
		wanted = append(wanted, &c.proxyPort)
	}
	for _, p := range wanted {
		var err error
		if *p, err = reservePort(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) makeCredentials() (err error) {
	c.credentials, err = newCredentials(c.dir)
	return err
}

func (c *Cluster) makeKubeconfigs() error {
	w := fileWriter{dir: c.dir}
	var errs []error
	write := func(file, server, user string, groups ...string) (path string, content []byte) {
		content, err := c.certificateKubeconfig(server, user, groups...)
		errs = append(errs, err)
		return w.write(file, content), content
	}
	c.adminFile, c.admin = write("kubeconfig", c.endpoint(), userAdmin, groupMasters)
	c.controllerManagerFile, _ = write("kube-controller-manager.kubeconfig", c.endpoint(), userControllerManager)
	c.schedulerFile, _ = write("kube-scheduler.kubeconfig", c.endpoint(), userScheduler)
	c.kwokKubeconfig, _ = write("kwok.kubeconfig", c.endpoint(), userKwok, groupMasters)
	if c.options.FaultProxy {
		_, c.proxied = write("proxy.kubeconfig", "https://"+c.proxyPort.Address(), userAdmin, groupMasters)
	}
	if err := errors.Join(append(errs, w.err)...); err != nil {
		return err
	}
	var err error
	if c.rest, err = restConfig(c.admin); err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(c.rest)
	return err
}

func (c *Cluster) makeFiles() error {
	kwok, err := kwokConfiguration(c.options.Pods)
	if err != nil {
		return err
	}
	w := fileWriter{dir: c.dir}
	c.kwokFile = w.write("kwok.yaml", kwok)
	c.auditPolicyFile = w.write("audit-policy.yaml", []byte(auditPolicy))
	c.auditLog = filepath.Join(c.logs, "audit.log")
	return w.err
}

func (c *Cluster) makeProxy() (err error) {
	if c.options.FaultProxy {
		c.proxy, err = NewProxy(c.proxyPort.Address(), c.apiPort.Address())
	}
	return err
}
