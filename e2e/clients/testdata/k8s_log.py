"""What Ansible's module k8s_log asks for with a Job: python3 k8s_log.py KUBECONFIG NAMESPACE JOB"""

import sys

from kubernetes import config, dynamic

namespace, name = sys.argv[2], sys.argv[3]
client = dynamic.DynamicClient(config.new_client_from_config(sys.argv[1]))
jobs, pods = client.resources.get(api_version="batch/v1", kind="Job"), client.resources.get(api_version="v1", kind="Pod")
if "log" in jobs.subresources:
    sys.exit("Jobs have logs of their own")
labels = dict(jobs.get(name=name, namespace=namespace).spec.selector.matchLabels)
selector = ",".join(key + "=" + value for key, value in labels.items())
found = pods.get(namespace=namespace, label_selector=selector).items
if not found:
    sys.exit("No pods in namespace %s matched selector %s" % (namespace, selector))
print(pods.log.get(name=found[0].metadata.name, namespace=namespace, serialize=False).data.decode("utf8"))
