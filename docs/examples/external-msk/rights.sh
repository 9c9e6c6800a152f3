#!/bin/sh
# rights.sh BOOTSTRAP USER: what wrackline.yaml needs in the cluster, granted by Kafka's own tool with the rights of
# whoever is in admin.properties.
set -eu
grant() { kafka-acls.sh --bootstrap-server "$bootstrap" --command-config admin.properties --add --allow-principal "User:$user" "$@"; }
bootstrap=$1 user=$2
grant --operation Create --operation Delete --operation Describe --operation DescribeConfigs --operation Read \
    --operation Write --topic wrackline- --resource-pattern-type prefixed
grant --operation Describe --group wrackline --resource-pattern-type prefixed
# For transfer-leadership, and for the settings of the brokers.
grant --operation Describe --operation Alter --operation DescribeConfigs --cluster
