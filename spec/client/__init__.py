"""The state that a client library keeps between an application and a server.

- `library`: the state machine. Its events are the requests of the application and the packets and state changes of the
  connection.

Source: ZooKeeper's `ClientCnxn`, `ZKWatchManager`.
"""
